// The shape of what a job says of labels and keys. The server has the last word.

const WORD = '[^\\s,=!()]+'
const VALUE = '[^\\s,=!()]*'
const TERM = [
  `!\\s*${WORD}`,
  `${WORD}\\s*(?:==?|!=)\\s*${VALUE}`,
  `${WORD}\\s+(?:in|notin)\\s*\\(\\s*${VALUE}\\s*(?:,\\s*${VALUE}\\s*)*\\)`,
  WORD,
].join('|')
const SELECTOR = new RegExp(`^\\s*(?:(?:${TERM})\\s*(?:,\\s*(?:${TERM})\\s*)*)?$`)

/** "zone=eu, tier in (a, b), env!=prod, gpu, !spot" */
export function isSelector(text: string): boolean {
  return SELECTOR.test(text)
}

/** A JSON pointer (RFC 6901) into the input: "/customer/id". */
export function isPointer(text: string): boolean {
  return /^(?:\/(?:[^~/]|~[01])*)+$/.test(text.trim())
}
