// The JSON editor. The editor proper (CodeMirror, ~130 kB) is loaded only on
// pages that show one; until then, and if it cannot be loaded, a text area
// does the same work.
import { lazy, Suspense, Component, type ReactNode } from 'react'
import { loadChunk } from '../../lib/chunk'
import { JsonText, parseJson, writeJson } from '../../lib/json'

const Editor = lazy(() => loadChunk(() => import('./JsonEditorInner')))

export interface JsonEditorProps {
  value?: string
  onChange?: (text: string) => void
  label: string
  invalid?: boolean
  /** Set by the form, for its label. */
  id?: string
  minHeight?: string
}

function Plain({ value, onChange, label, invalid }: JsonEditorProps) {
  return (
    <textarea
      className="mono plain-editor"
      aria-label={label}
      aria-invalid={invalid}
      value={value ?? ''}
      onChange={(event) => onChange?.(event.target.value)}
    />
  )
}

class FallBack extends Component<{ plain: ReactNode; children: ReactNode }, { broken: boolean }> {
  override state = { broken: false }
  static getDerivedStateFromError() {
    return { broken: true }
  }
  override render() {
    return this.state.broken ? this.props.plain : this.props.children
  }
}

export function JsonEditor(props: JsonEditorProps) {
  const plain = <Plain {...props} />
  return (
    <div className={`editor-box${props.invalid ? ' invalid' : ''}`} id={props.id}>
      <FallBack plain={plain}>
        <Suspense fallback={plain}>
          <Editor {...props} />
        </Suspense>
      </FallBack>
    </div>
  )
}

/** Parses the editor's text; "" means no input. */
export function parseInput(text: string): { ok: true; value: unknown } | { ok: false; message: string } {
  if (text.trim() === '') return { ok: true, value: null }
  try {
    return { ok: true, value: parseJson(text) }
  } catch (err) {
    return { ok: false, message: err instanceof Error ? err.message : String(err) }
  }
}

/** What is sent of the editor's text: just that. */
export function writtenInput(text: string): unknown {
  return text.trim() === '' ? null : new JsonText(text.trim())
}

export function inputText(value: unknown): string {
  return value === null || value === undefined ? '' : writeJson(value, 2)
}

type Schema = { type?: string | string[]; properties?: Record<string, Schema>; default?: unknown; examples?: unknown[]; enum?: unknown[]; items?: Schema; format?: string }

/** A value that a JSON schema would accept, as a start for typing. */
export function exampleOf(schema: unknown, depth = 0): unknown {
  const s = (schema ?? {}) as Schema
  if (s.default !== undefined) return s.default
  if (s.examples?.length) return s.examples[0]
  if (s.enum?.length) return s.enum[0]
  const type = Array.isArray(s.type) ? s.type.find((t) => t !== 'null') : s.type
  switch (type) {
    case 'object':
      return depth > 4 ? {} : Object.fromEntries(Object.entries(s.properties ?? {}).map(([k, v]) => [k, exampleOf(v, depth + 1)]))
    case 'array':
      return s.items && depth <= 4 ? [exampleOf(s.items, depth + 1)] : []
    case 'integer':
    case 'number':
      return 0
    case 'boolean':
      return false
    case 'string':
      return s.format === 'date-time' ? '2026-01-01T00:00:00Z' : ''
    default:
      return s.properties ? exampleOf({ ...s, type: 'object' }, depth) : null
  }
}
