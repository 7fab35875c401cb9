import { LinkifyIt, REBuilder } from 'linkify-it';

export interface Link {
  index: number;
  text: string;
  url: string;
}

/** Scripts without blanks between words: an address may follow any of their letters. */
const UNSPACED = String.raw`[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}]`;
/** Characters that join `www.` to the text before it: part of a word, of an e-mail address or of another host. */
const JOINED = /[\p{L}\p{N}_@.:/\\-]$/u;

/** Addresses may also begin after symbols and emoji, where the library expects blanks or punctuation. */
class ChatRules extends REBuilder {
  private search: RegExp | undefined;

  override get_schema_search(): RegExp {
    const word_start = String.raw`(?:(?<![\p{L}\p{N}_])|(?<=${UNSPACED}))`;
    this.search ??= new RegExp(`()${word_start}(https?:|www\\.)`, 'giu');
    return this.search;
  }
}

const linkify = new LinkifyIt({ rebuilder: new ChatRules(), fuzzyEmail: false, urlAuth: true, maxLength: 2000 })
  .add('ftp:', null)
  .add('mailto:', null)
  .add('//', null)
  .add('www.', {
    validate(text, position, self) {
      const start = position - 'www.'.length;
      if (JOINED.test(text.slice(Math.max(0, start - 2), start))) return 0;
      const length = self.testSchemaAt(`http://${text.slice(start)}`, 'http:', 'http:'.length);
      return Math.max(0, length - '//www.'.length);
    },
    normalize(match) {
      match.url = `https://${match.text}`;
    },
  });

/** Web addresses in a text, in their order: those with the scheme http or https, and those that begin with `www.`. */
export const findLinks = (text: string): Link[] =>
  (linkify.match(text) ?? [])
    .filter(({ url }) => URL.canParse(url))
    .map(({ index, text, url }) => ({ index, text, url }));
