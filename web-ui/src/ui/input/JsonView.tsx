import { writeJson } from '../../lib/json'

/** JSON or text for reading; scrollable by keyboard. */
export function JsonView({ value, label, empty }: { value: unknown; label: string; empty: string }) {
  if (value === null || value === undefined) return <p className="muted">{empty}</p>
  const text = typeof value === 'string' ? value : writeJson(value, 2)
  return (
    <pre className="code-block wrap" tabIndex={0} role="region" aria-label={label}>
      {text}
    </pre>
  )
}
