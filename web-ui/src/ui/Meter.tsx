/** A share of 0 to 100 as a bar. It is decoration: the numbers beside it say the same. */
export function Meter({ share }: { share: number }) {
  return (
    <svg className="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect width={share} height={8} />
    </svg>
  )
}
