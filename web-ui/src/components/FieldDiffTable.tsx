import { useTranslation } from 'react-i18next'
import { showValue, type FieldDiff } from '../lib/diff'

/** Field, before, after: one row per changed field. */
export function FieldDiffTable({ diff, label }: { diff: FieldDiff[]; label: string }) {
  const { t } = useTranslation()
  return (
    <div className="table-wrap">
      <table className="table diff" role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {(['field', 'before', 'after'] as const).map((key) => (
              <th key={key} role="columnheader" scope="col">
                {t(`jobs.revisions.${key}`)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {diff.map((one) => (
            <tr key={one.path} role="row">
              <td role="cell" className="mono card-title">
                {one.path}
              </td>
              <td role="cell" className="mono was" data-label={t('jobs.revisions.before')}>
                {showValue(one.before)}
              </td>
              <td role="cell" className="mono now" data-label={t('jobs.revisions.after')}>
                {showValue(one.after)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
