// From a log line to what may be shown: text only, colours of terminals
// reduced to our palette, control characters made visible, matches marked.
import Anser from 'anser'
import type { LogLevel, LogLine } from '../../../api/types'
import { writeJson } from '../../../lib/json'

export const LEVELS: readonly LogLevel[] = ['DEBUG', 'INFO', 'WARN', 'ERROR']

/** Rank of a level; names that we do not know count as INFO. */
export function levelRank(level: string): number {
  const at = LEVELS.indexOf(level.toUpperCase() as LogLevel)
  return at < 0 ? 1 : at
}

const COLOUR: Record<string, string> = {
  'ansi-red': 'var(--failed)',
  'ansi-bright-red': 'var(--failed)',
  'ansi-green': 'var(--success)',
  'ansi-bright-green': 'var(--success)',
  'ansi-yellow': 'var(--skipped)',
  'ansi-bright-yellow': 'var(--skipped)',
  'ansi-blue': 'var(--running)',
  'ansi-bright-blue': 'var(--running)',
  'ansi-magenta': 'var(--retrying)',
  'ansi-bright-magenta': 'var(--retrying)',
  'ansi-cyan': 'var(--running)',
  'ansi-bright-cyan': 'var(--running)',
}

export interface Piece {
  text: string
  colour?: string
  bold?: boolean
  match?: boolean
}

/** Longest part of one line that is laid out at once, in characters. */
export const LINE_LIMIT = 10_000

// oxlint-disable-next-line no-control-regex -- showing them is the point
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f]/g
// Further control characters, and those that turn the direction of the text:
// with them a line can pretend to say something else.
const HIDDEN = /[\u0080-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

function visible(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll('\r', '\u240d')
    .replace(CONTROL, (char) => (char === '\u007f' ? '\u2421' : String.fromCharCode(0x2400 + char.charCodeAt(0))))
    .replace(HIDDEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The message without terminal codes, for searching and copying. */
export function plainText(message: string): string {
  return message.includes('\u001b') ? Anser.ansiToText(message) : message
}

export function piecesOf(message: string, needle: string): Piece[] {
  const parts: Piece[] = message.includes('\u001b')
    ? Anser.ansiToJson(message, { use_classes: true, remove_empty: true }).map((part) => ({
        text: visible(part.content.replaceAll('\u001b', '\u241b')),
        colour: COLOUR[part.fg ?? ''],
        bold: part.decorations?.includes('bold'),
      }))
    : [{ text: visible(message) }]
  return needle ? parts.flatMap((part) => mark(part, needle)) : parts
}

// A match across two colours is found but not marked; good enough to read.
function mark(part: Piece, needle: string): Piece[] {
  const out: Piece[] = []
  const haystack = part.text.toLowerCase()
  let from = 0
  for (let at = haystack.indexOf(needle); at >= 0; at = haystack.indexOf(needle, from)) {
    if (at > from) out.push({ ...part, text: part.text.slice(from, at) })
    out.push({ ...part, text: part.text.slice(at, at + needle.length), match: true })
    from = at + needle.length
  }
  if (from < part.text.length) out.push({ ...part, text: part.text.slice(from) })
  return out
}

export function attrsText(line: LogLine): string {
  if (line.traceId) return [attrsText({ ...line, traceId: undefined }), `trace=${line.traceId}`].filter(Boolean).join(' ')
  if (!line.attrs) return ''
  return Object.entries(line.attrs)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? (/[\s="]/.test(value) || value === '' ? JSON.stringify(value) : value) : writeJson(value)}`)
    .join(' ')
}

export interface LogFilter {
  /** Lowest rank shown. */
  minRank: number
  attempt: number | undefined
}

export function passes(line: LogLine, filter: LogFilter): boolean {
  return levelRank(line.level) >= filter.minRank && (filter.attempt === undefined || line.attempt === filter.attempt)
}

export function matchesText(line: LogLine, needle: string): boolean {
  return plainText(line.msg).toLowerCase().includes(needle) || attrsText(line).toLowerCase().includes(needle)
}
