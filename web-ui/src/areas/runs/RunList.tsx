import { useNarrow } from '../../ui/hooks'
import { RunBars } from './RunBars'
import { RunTable, type Controlled } from './RunTable'

/** Runs with their picture above; on a phone the picture follows, so that the first run is in view. */
export function RunList(props: Controlled) {
  const bars = <RunBars {...props} />
  return useNarrow() ? (
    <>
      <RunTable {...props} />
      {bars}
    </>
  ) : (
    <>
      {bars}
      <RunTable {...props} />
    </>
  )
}
