import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

export interface ChartTable {
  head: string[]
  rows: ReactNode[][]
}

/** The numbers of a picture, made when they are asked for. */
export function AsTable({ name, table }: { name: string; table: () => ChartTable }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <details className="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {t('charts.asTable')}
        <span className="sr-only">: {name}</span>
      </summary>
      {open && <Rows name={name} {...table()} />}
    </details>
  )
}

function Rows({ name, head, rows }: ChartTable & { name: string }) {
  const { t } = useTranslation()
  return (
    <div className="table-wrap chart-rows" role="region" tabIndex={0} aria-label={`${t('charts.asTable')}: ${name}`}>
      <table className="table keep">
        <thead>
          <tr>
            {head.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={head[j]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
