/** Ends a `switch` over a union: a member without a case stops the build here. */
export function unreachable(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
