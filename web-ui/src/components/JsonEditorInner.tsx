import { json } from '@codemirror/lang-json'
import CodeMirror, { EditorView } from '@uiw/react-codemirror'
import { useMemo } from 'react'
import type { JsonEditorProps } from './JsonEditor'
import { useThemeMode } from './themeContext'

export default function JsonEditorInner({ value, onChange, label, invalid, minHeight = '110px' }: JsonEditorProps) {
  const mode = useThemeMode()
  const extensions = useMemo(
    () => [
      json(),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': label, 'aria-invalid': invalid ? 'true' : 'false' }),
    ],
    [label, invalid],
  )
  return (
    <CodeMirror
      value={value ?? ''}
      onChange={onChange}
      theme={mode}
      extensions={extensions}
      minHeight={minHeight}
      maxHeight="360px"
      // Tab moves the focus on, as everywhere else in the form.
      indentWithTab={false}
      basicSetup={{ foldGutter: false, highlightActiveLine: false }}
    />
  )
}
