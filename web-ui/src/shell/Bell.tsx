/** The sign of the product. */
export function Bell({ size = 24 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0b57d0" />
      <path d="M16 6c-4 0-6 3-6 7 0 5-1.5 7-3 8.500h18C23.500 20 22 18 22 13c0-4-2-7-6-7z" fill="#fff" />
      <circle cx="16" cy="24.500" r="2.200" fill="#fff" />
    </svg>
  )
}
