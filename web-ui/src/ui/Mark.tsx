// The mark: three bells of rising size on one beam. The run strip (charts/Peal) and the
// loading animation repeat it.

interface BellProps {
  x: number
  width: number
}

const BEAM = 3

/** One bell below the beam. Its height follows from its width. */
function Bell({ x, width: w }: BellProps) {
  const top = BEAM + 1
  const low = top + w * 1.5
  return (
    <g className="mark-bell">
      <path d={`M${x - w / 2} ${low}C${x - w * 0.25} ${low - w * 0.4} ${x - w * 0.45} ${top} ${x} ${top}S${x + w * 0.25} ${low - w * 0.4} ${x + w / 2} ${low}Z`} />
      <circle className="mark-clapper" cx={x} cy={low + w * 0.14} r={w * 0.16} />
    </g>
  )
}

/** The mark in the colour of the text around it. With swing, the bells swing once. */
export function Mark({ size = 24, swing }: { size?: number; swing?: boolean }) {
  return (
    <svg className={swing ? 'mark swing' : 'mark'} width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={`M1 ${BEAM}H23`} stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
      <Bell x={4.5} width={5} />
      <Bell x={11} width={6.5} />
      <Bell x={18.8} width={8.2} />
    </svg>
  )
}

/** The drawing of an empty list: one bell at rest. */
export function BellAtRest() {
  return (
    <svg width="56" height="56" viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.2" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      <path d="M3 3H21M12 3V5M5.500 18C8.500 15.500 6.800 5 12 5S15.500 15.500 18.500 18ZM10.600 18A1.500 1.500 0 0 0 13.400 18" />
    </svg>
  )
}
