import type { ProblemItem } from '../../api/types'

/** "shops[1]: want integer, got string": one place of an input that does not fit. */
export function misfitText(item: ProblemItem): string {
  const place = item.location.replace(/^body\.input\.?/, '')
  return [place && `${place}:`, item.message, item.hint].filter(Boolean).join(' ')
}

/** What is wrong with an input, as a list. */
export function Misfits({ items }: { items: ProblemItem[] }) {
  return (
    <ul className="mono small list-indent any-wrap">
      {items.map((item) => (
        <li key={`${item.pointer ?? ''} ${item.message}`}>{misfitText(item)}</li>
      ))}
    </ul>
  )
}
