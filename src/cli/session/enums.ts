/** Enum values by the names that people use: what reads and what shows them share one reading. */
export { fullName, numberOf, shortName, shortNames } from '../../spec/enum-names.ts';
