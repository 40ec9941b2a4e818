// CodeMirror with just what JSON of a job needs: history, indentation,
// brackets, colours. The browser moves the cursor. No search, completion or lint: they would double it.
import { history, historyKeymap, insertNewlineAndIndent } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { bracketMatching, defaultHighlightStyle, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { Compartment, EditorState } from '@codemirror/state'
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useEffectEvent, useRef } from 'react'
import type { JsonEditorProps } from './JsonEditor'
import { useThemeMode, type Mode } from '../themeContext'

const darkColours = HighlightStyle.define([
  { tag: tags.propertyName, color: '#79b8ff' },
  { tag: tags.string, color: '#a5d6a7' },
  { tag: [tags.number, tags.bool, tags.null], color: '#ffa657' },
])

const frame = (dark: boolean, minHeight: string) =>
  EditorView.theme(
    {
      '&': { backgroundColor: 'var(--surface)', color: 'var(--text)', fontSize: '13px', maxHeight: '360px' },
      '&.cm-focused': { outline: 'none' },
      '.cm-scroller': { fontFamily: 'var(--mono)', overflow: 'auto', minHeight },
      '.cm-content': { minHeight, caretColor: 'var(--text)' },
      '.cm-cursor': { borderLeftColor: 'var(--text)' },
      '.cm-gutters': { backgroundColor: 'var(--surface-2)', color: 'var(--muted)', border: 'none' },
    },
    { dark },
  )

const themeOf = (mode: Mode, minHeight: string) => [
  frame(mode === 'dark', minHeight),
  syntaxHighlighting(mode === 'dark' ? darkColours : defaultHighlightStyle),
]

const attributesOf = (label: string, invalid: boolean) =>
  EditorView.contentAttributes.of({ 'aria-label': label, 'aria-invalid': String(invalid), 'aria-multiline': 'true' })

export default function JsonEditorInner({ value = '', onChange, label, invalid = false, minHeight = '110px' }: JsonEditorProps) {
  const mode = useThemeMode()
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  // Parts which change while the editor lives.
  const parts = useRef({ theme: new Compartment(), attributes: new Compartment() })
  const report = useEffectEvent((text: string) => onChange?.(text))

  const extensions = useEffectEvent(() => [
    lineNumbers(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    json(),
    EditorView.lineWrapping,
    // Tab is not taken: it moves the focus on, as everywhere else in a form.
    keymap.of([{ key: 'Enter', run: insertNewlineAndIndent }, ...historyKeymap]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) report(update.state.doc.toString())
    }),
    parts.current.theme.of(themeOf(mode, minHeight)),
    parts.current.attributes.of(attributesOf(label, invalid)),
  ])
  const initial = useEffectEvent(() => value)

  useEffect(() => {
    if (!host.current) return
    const editor = new EditorView({ parent: host.current, state: EditorState.create({ doc: initial(), extensions: extensions() }) })
    view.current = editor
    return () => {
      editor.destroy()
      view.current = undefined
    }
  }, [])

  useEffect(() => {
    view.current?.dispatch({
      effects: [parts.current.theme.reconfigure(themeOf(mode, minHeight)), parts.current.attributes.reconfigure(attributesOf(label, invalid))],
    })
  }, [mode, minHeight, label, invalid])

  // The value changed by other means: an example was inserted, a form reset.
  useEffect(() => {
    const editor = view.current
    if (!editor) return
    const now = editor.state.doc.toString()
    if (now !== value) editor.dispatch({ changes: { from: 0, to: now.length, insert: value } })
  }, [value])

  return <div ref={host} />
}
