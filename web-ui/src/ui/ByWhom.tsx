import { RelativeTime } from './TimeText'

/** Who did it, and when. */
export function ByWhom({ who, at }: { who: string; at: string | undefined }) {
  return (
    <span>
      {who} · <RelativeTime at={at} />
    </span>
  )
}
