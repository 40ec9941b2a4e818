/** What a role is bound to, behind its name in a list. */
export function BoundTo({ names }: { names: string[] }) {
  return names.length > 0 ? <span className="mono muted"> {names.join(', ')}</span> : null
}
