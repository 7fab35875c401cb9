/** `account_id` → `accountId`; all names of GraphQL are derived here. */
export function camelCase(name: string): string {
  return name.replace(/_+([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
}

/** `createUserApiKey` → `CreateUserApiKey`. */
export function pascalCase(name: string): string {
  const camel = camelCase(name);
  return camel.charAt(0).toUpperCase() + camel.slice(1);
}

/** `global_off`, `kick:follower` → `GLOBAL_OFF`, `KICK_FOLLOWER`: GraphQL's spelling of a value of a named enum. */
export function enumName(value: string): string {
  const name = value
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toUpperCase();
  return /^[0-9]/.test(name) ? `_${name}` : name;
}
