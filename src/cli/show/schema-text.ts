import {
  type Dataset,
  FeatureDtypeSchema,
  type NodeType,
  type Relation,
} from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { formatCount } from '../../spec/counted.ts';
import { shortName } from '../../spec/enum-names.ts';
import type { Session } from '../session/session.ts';
import { classesNouns, taskText } from './dataset-text.ts';
import { type Column, tableOf } from './output.ts';

/** Types of nodes and relations of a dataset that has several, drawn as two tables for people. */
export function schemaSections(session: Session, { nodeTypes, relations }: Dataset): string[] {
  if (nodeTypes.length === 0) return [];
  return [
    tableOf(session, typeColumns, nodeTypes),
    tableOf(session, relationColumns(relations), relations),
  ];
}

const typeColumns: readonly Column<NodeType>[] = [
  { title: 'TYPE', shown: ({ name }) => name },
  { title: 'NODES', align: 'right', shown: ({ numNodes }) => formatCount(numNodes) },
  { title: 'FEATURES', shown: featuresText },
  { title: 'LABELS', shown: labelsText },
  { title: 'TRAIN / VALIDATION / TEST', shown: splitText },
];

function featuresText({ numFeatures, featureDtype }: NodeType): string {
  if (numFeatures === 0) return 'none';
  const dtype = shortName(FeatureDtypeSchema, featureDtype).toLowerCase();
  return `${formatCount(numFeatures)} ${dtype}`;
}

function labelsText(type: NodeType): string {
  if (type.task === 0) return 'none';
  const nouns = classesNouns(type);
  const noun = type.numClasses === 1 ? nouns.one : nouns.many;
  return `${formatCount(type.numClasses)} ${noun}, ${taskText(type)}`;
}

function splitText({ task, numTrain, numVal, numTest }: NodeType): string {
  return task === 0 ? '' : [numTrain, numVal, numTest].map(formatCount).join(' / ');
}

function relationColumns(relations: readonly Relation[]): readonly Column<Relation>[] {
  const hasLinks = relations.some(({ numTrainLinks }) => numTrainLinks > 0n);
  const hasReverses = relations.some(({ reverseOf }) => reverseOf !== '');
  return [
    { title: 'SOURCE', shown: ({ source }) => source },
    { title: 'RELATION', shown: ({ name }) => `── ${name} ──►` },
    { title: 'DESTINATION', shown: ({ destination }) => destination },
    { title: 'EDGES', align: 'right', shown: ({ numEdges }) => formatCount(numEdges) },
    ...(hasLinks ? [linksColumn] : []),
    ...(hasReverses ? [reverseColumn] : []),
  ];
}

const linksColumn: Column<Relation> = {
  title: 'LINKS TO LEARN / VALIDATE / TEST',
  shown: ({ numTrainLinks, numValLinks, numTestLinks }) =>
    numTrainLinks === 0n
      ? ''
      : [numTrainLinks, numValLinks, numTestLinks].map(formatCount).join(' / '),
};

const reverseColumn: Column<Relation> = {
  title: 'REVERSE OF',
  shown: ({ reverseOf }) => reverseOf,
};
