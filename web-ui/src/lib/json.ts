// JSON without loss. A JS number is a double: JSON.parse makes
// 9007199254740992 of 9007199254740993. What a handler gets must be what was
// written, so numbers that a double would change stay text.

/** A piece of JSON that is kept as it was written. */
export class JsonText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
}

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

/** The number would be written as another text again. */
const changes = (token: string): boolean => !token.startsWith('"') && String(Number(token)) !== token

/** Whether JSON.parse would change a number of this text, which is valid JSON. */
export function losesNumbers(text: string): boolean {
  for (const [token] of text.matchAll(TOKENS)) if (changes(token)) return true
  return false
}

/** As JSON.parse, faults and all; numbers that it would change are JsonText. */
export function parseJson(text: string): unknown {
  const plain = JSON.parse(text) as unknown
  if (!losesNumbers(text)) return plain
  // They pass through the parser as strings which nobody can have written.
  const tag = `json-number-${Math.random()}:`
  return JSON.parse(
    text.replace(TOKENS, (token) => (changes(token) ? `"${tag}${token}"` : token)),
    (_key, value: unknown) => (typeof value === 'string' && value.startsWith(tag) ? new JsonText(value.slice(tag.length)) : value),
  ) as unknown
}

/** As JSON.stringify; what is JsonText stands as it was written. */
export function writeJson(value: unknown, indent?: number, sorted = false): string {
  const texts: string[] = []
  const tag = `json-text-${Math.random()}:`
  const out = JSON.stringify(
    value,
    (_key, part: unknown) => {
      if (part instanceof JsonText) return tag + (texts.push(part.text) - 1)
      return sorted && isRecord(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part
    },
    indent,
  ) as string | undefined
  if (out === undefined) return ''
  return texts.length === 0 ? out : out.replace(new RegExp(`"${tag}(\\d+)"`, 'g'), (_, at: string) => texts[Number(at)] ?? '')
}

/** The order of keys makes no difference. */
export function sameJson(a: unknown, b: unknown): boolean {
  return writeJson(a, undefined, true) === writeJson(b, undefined, true)
}

/** The number that a text writes, exactly; undefined when it writes none. */
export function exactNumber(text: string): number | JsonText | undefined {
  if (!NUMBER.test(text)) return undefined
  return changes(text) ? new JsonText(text) : Number(text)
}

/** An object of JSON: no list, no null, no number that is kept as text. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonText)
}
