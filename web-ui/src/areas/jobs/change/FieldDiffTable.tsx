import { useTranslation } from 'react-i18next'
import type { FieldDiff } from '../../../lib/diff'
import { settingLabel, settingText } from '../jobWords'

interface Props {
  diff: FieldDiff[]
  label: string
  /** What the two sides are; default: before and after. */
  sides?: { before: string; after: string }
}

/** The two sides of each setting that differs, beside each other. */
export function FieldDiffTable({ diff, label, sides }: Props) {
  const { t } = useTranslation()
  const before = sides?.before ?? t('jobs.revisions.before')
  const after = sides?.after ?? t('jobs.revisions.after')
  return (
    <div className="table-wrap">
      <table className="table diff" role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {[t('jobs.revisions.field'), before, after].map((head) => (
              <th key={head} role="columnheader" scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {diff.map((one) => (
            <tr key={one.path} role="row">
              <td role="cell" className="card-title">
                <SettingName path={one.path} />
              </td>
              <td role="cell" className="was" data-label={before}>
                {settingText(one.path, one.before, t)}
              </td>
              <td role="cell" className="now" data-label={after}>
                {settingText(one.path, one.after, t)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** As the form calls it, and as API and command line do. */
export function SettingName({ path }: { path: string }) {
  const { t } = useTranslation()
  const label = settingLabel(path, t)
  if (!label) return <span className="mono">{path}</span>
  return (
    <>
      {label} <span className="mono muted small">{path}</span>
    </>
  )
}
