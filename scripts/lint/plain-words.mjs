// The patterns of unclear English that comments, documents and commit subjects avoid: a noun as the subject, a
// technical verb, one reason. Each has the advice that its finding prints.

const PERSONS =
  'users?|persons?|people|viewers?|chatters?|moderators?|streamers?|owners?|operators?|members?|specification';
const VENDORS = 'vendors?|Twitch|YouTube|Kick|Trovo|Discord|Stripe|PayPal|Shopify|Spotify|StreamElements';
const SPEECH = 'told|tells?|said|says?|heard|hears?|spoken';

/** In the first sentence of a comment. */
const SENTENCE = [
  [/^(What|Who|Whose|Whom|Whoever|Whatever|That which)\b/, 'begin with a noun, not with a clause'],
  [/\b(is|are|was|were) (none|nobody('s)?)\b/, 'name what is missing'],
  [
    new RegExp(`(?<!\\b(?:${PERSONS}|${VENDORS})(?: has| have| had| who)? )\\b(${SPEECH})\\b`),
    'machines return, store, report or receive; they do not speak or hear',
  ],
  [/\b(for|to|of|by|with) who\b|\bwho is no\b/, 'name the person or the role'],
  [/\bso (many|much|long|often)\b(?! that)/, 'give the amount, or compare with what'],
  [/\b(is|are) looked\b/, 'use a technical verb: read, search, check'],
  [/\banew\b/, 'again'],
  [/\bbeside\b/, 'next to, or besides'],
  [/\bbuilds? (of )?before\b|\bof before\b/, 'the previous release'],
  [/\bliving\b/, 'active'],
  [/\b(is|are|was|were|be) away\b/, 'unavailable'],
  [/\bcomes? to\b/, 'resolves to'],
  [/\bgoes on\b/, 'continues'],
];

/** As the first word of a comment on a member, where a reader sees no earlier sentence. */
const OPENING = [/^(It|They|One|Those|These|The newest|The same)\b/, 'name the thing'];

/**
 * The findings of one text, each as `"words": advice`; only its first sentence is read.
 * @param {string} text prose without comment marks
 * @param {{ member?: boolean }} where `member`: a comment that stands alone before a declaration
 */
export function findings(text, { member = false } = {}) {
  const sentence = firstSentence(text);
  return [...SENTENCE, ...(member ? [OPENING] : [])].flatMap(([pattern, advice]) => {
    const found = pattern.exec(sentence);
    return found ? [`"${found[0]}": ${advice}`] : [];
  });
}

/** Up to the first full stop, question mark or semicolon before a space; code spans are left out. */
const firstSentence = (text) =>
  text
    .replace(/`[^`]*`/g, '``')
    .trim()
    .split(/(?<=[.?!;:])\s/, 1)[0];
