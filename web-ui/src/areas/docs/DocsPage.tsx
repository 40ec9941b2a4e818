// The reference of the API, made from the document that the server serves. It
// needs nobody to be signed in, and nothing from another host.
import './docs.css'
import { useQuery } from '../../api/useQuery'
import { SearchOutlined } from '@ant-design/icons'
import { useMemo, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { basePath } from '../../lib/base'
import { matches, operationsOf, schemaText, shapeOf, type Document, type Operation, type Schema } from './reference'
import { TextField } from '../../ui/TextField'

const SOURCE = basePath + '/api/openapi.json'

async function load(signal: AbortSignal): Promise<Document> {
  const res = await fetch(SOURCE, { signal })
  if (!res.ok) throw new Error(`${res.status} ${res.statusText}`)
  return (await res.json()) as Document
}

export function DocsPage() {
  const { t } = useTranslation()
  const [q, setQ] = useState('')
  const doc = useQuery({ queryKey: ['openapi'], queryFn: ({ signal }) => load(signal), staleTime: Infinity })
  const operations = useMemo(() => (doc.data ? operationsOf(doc.data) : []), [doc.data])
  const shown = operations.filter((one) => matches(one, q))
  return (
    <main className="reference">
      <h1>{t('reference.title')}</h1>
      <p>
        {t('reference.help')} <a href={SOURCE}>{SOURCE}</a>
      </p>
      {doc.error && <p role="alert">{t('reference.failed', { reason: doc.error.message })}</p>}
      {doc.data && (
        <>
          <p className="muted">{doc.data.info.description}</p>
          <TextField type="search" clears icon={<SearchOutlined aria-hidden />} label={t('reference.search')} value={q} onChange={setQ} />
          <p role="status">{t('reference.found', { count: shown.length })}</p>
          {(doc.data.tags ?? []).map((tag) => {
            const own = shown.filter((one) => one.tags?.[0] === tag.name)
            return (
              own.length > 0 && (
                <section key={tag.name} aria-label={tag.name}>
                  <h2>{tag.name}</h2>
                  <p className="muted">{tag.description}</p>
                  {own.map((one) => (
                    <Entry key={one.operationId} doc={doc.data} op={one} />
                  ))}
                </section>
              )
            )
          })}
        </>
      )}
    </main>
  )
}

/** What is folded away is made when it is opened: the document is long. */
function Fold({ head, children, id }: { head: ReactNode; children: () => ReactNode; id?: string }) {
  const [open, setOpen] = useState(false)
  return (
    <details id={id} onToggle={(e) => e.currentTarget === e.target && setOpen(e.currentTarget.open)}>
      <summary>{head}</summary>
      {open && <div className="reference-body">{children()}</div>}
    </details>
  )
}

function Entry({ doc, op }: { doc: Document; op: Operation }) {
  const { t } = useTranslation()
  const body = op.requestBody?.content['application/json']?.schema
  return (
    <Fold
      id={op.operationId}
      head={
        <>
          <code>
            {op.method.toUpperCase()} {op.path}
          </code>{' '}
          {op.summary}
        </>
      }
    >
      {() => (
        <>
          <p>{op.description}</p>
          <p className="muted">
            <code>{op.operationId}</code> · {op['x-policy']}
          </p>
          {op.parameters && op.parameters.length > 0 && (
            <>
              <h3>{t('reference.parameters')}</h3>
              <dl>
                {op.parameters.map((p) => (
                  <Term key={p.in + p.name} name={p.name} type={`${p.in}, ${schemaText(p.schema)}`} required={p.required} text={p.description} />
                ))}
              </dl>
            </>
          )}
          {body && (
            <>
              <h3>{t('reference.body')}</h3>
              <Shape doc={doc} schema={body} />
            </>
          )}
          <h3>{t('reference.answers')}</h3>
          {Object.entries(op.responses).map(([status, answer]) => {
            const [type, content] = Object.entries(answer.content ?? {})[0] ?? []
            return (
              <Fold key={status} head={`${status} ${answer.description}`}>
                {() => (
                  <>
                    <p className="muted">{type ?? t('reference.noBody')}</p>
                    {content?.schema && <Shape doc={doc} schema={content.schema} />}
                  </>
                )}
              </Fold>
            )
          })}
        </>
      )}
    </Fold>
  )
}

function Term({ name, type, required, text, children }: { name: string; type: string; required?: boolean; text?: string; children?: ReactNode }) {
  const { t } = useTranslation()
  return (
    <>
      <dt>
        <code>{name}</code> <span className="muted">{type}</span> {required && <span className="muted">{t('reference.required')}</span>}
      </dt>
      <dd>
        {text}
        {children}
      </dd>
    </>
  )
}

/** The properties of an object; those that are objects can be opened. */
function Shape({ doc, schema }: { doc: Document; schema: Schema }) {
  const shape = shapeOf(doc, schema)
  if (!shape) return <p>{schemaText(schema)}</p>
  return (
    <dl>
      {Object.entries(shape.properties ?? {}).map(([name, one]) => {
        const inner = shapeOf(doc, one)
        return (
          <Term key={name} name={name} type={schemaText(one)} required={shape.required?.includes(name)} text={one.description}>
            {inner && <Fold head={schemaText(one)}>{() => <Shape doc={doc} schema={one} />}</Fold>}
          </Term>
        )
      })}
    </dl>
  )
}
