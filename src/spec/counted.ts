/** Numbers of things, as people say them. */

/** `2,330,240`. */
export function formatCount(value: number | bigint): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `1 job`, `2,048 jobs`; `many` is the plural where it is not the noun and an s. */
export function counted(value: number | bigint, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${Number(value) === 1 ? one : many}`;
}
