/** Parts of bidi-js, which publishes no types. */
declare module 'bidi-js' {
  interface Bidi {
    /** By UTF-16 unit; odd levels are from right to left. */
    getEmbeddingLevels(text: string): { levels: Uint8Array };
    getMirroredCharacter(character: string): string | null;
  }
  const create: () => Bidi;
  export default create;
}
