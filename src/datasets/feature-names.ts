import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatCount } from './problems.ts';

/** Names of columns of features: part of what a model takes, as their number and order are. */

/** Columns that a message names at most: a table may have hundreds of thousands. */
const columnsShown = 20;

/** Up to `most` names, and how many more there are. */
export function firstOf(names: readonly string[], most = columnsShown): string {
  const more = names.length - most;
  const shown = names.slice(0, most).join(', ');
  return more > 0 ? `${shown} and ${formatCount(more)} more` : shown;
}

/** The first name that stands a second time; undefined where each stands once. */
export function firstRepeated(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
}

/** What is wrong with the names of so many columns; null: nothing. */
export function featureNamesProblem(names: readonly string[], columns: number): string | null {
  if (names.length !== columns) {
    const given = `has ${formatCount(names.length)} feature_names`;
    return `${given}, expected ${formatCount(columns)}, one for each column of the features`;
  }
  const twice = firstRepeated(names);
  if (twice !== undefined) return `has the feature name '${twice}' twice, expected each once`;
  return names.includes('') ? 'has a feature name that is empty' : null;
}

/** Names of the features in a dataset's folder; null where they are not known. */
export function featureNamesOf(folder: string): readonly string[] | null {
  try {
    const story: unknown = JSON.parse(readFileSync(join(folder, 'import.json'), 'utf8'));
    if (typeof story !== 'object' || story === null || !('feature_names' in story)) return null;
    const { feature_names: names } = story;
    const isNames = Array.isArray(names) && names.every((name) => typeof name === 'string');
    return isNames ? names : null;
  } catch {
    // It is for people: a dataset without it is one whose names are not known.
    return null;
  }
}

const namesShown = 5;
const listed = (names: readonly string[]) =>
  firstOf(
    names.map((name) => `'${name}'`),
    namesShown,
  );

/** Why a model that was trained on columns of these names cannot take others; null: it can. */
export function columnsProblem(
  model: readonly string[],
  dataset: readonly string[],
): string | null {
  const [inModel, inDataset] = [new Set(model), new Set(dataset)];
  const missing = model.filter((name) => !inDataset.has(name));
  const surplus = dataset.filter((name) => !inModel.has(name));
  if (missing.length > 0 || surplus.length > 0) {
    const parts = [
      ...(missing.length === 0 ? [] : [`lacks the columns ${listed(missing)} of the model`]),
      ...(surplus.length === 0 ? [] : [`has ${listed(surplus)}, which the model does not take`]),
    ];
    return `${parts.join(' and ')}: import it with the columns that the model was trained on`;
  }
  const at = model.findIndex((name, column) => dataset[column] !== name);
  if (at < 0) return null;
  const differs = `column ${at} is '${dataset[at]}' here and '${model[at]}' in the model`;
  return (
    `has the model's columns in another order: ${differs}; import it with its columns in the ` +
    `order ${listed(model)}`
  );
}
