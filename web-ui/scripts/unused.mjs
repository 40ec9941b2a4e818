// Parts of the component library that others of its parts bring along and that no page uses.
// Together they have 25 kB gz.
const NOTHING = '\0unused-nothing'
const CHILDREN = '\0unused-children'

/** By the end of the importing file: what it imports, and what stands there instead. */
const UNUSED = {
  // No field has a code of single letters, and the search field is our own (ui/SearchBox.tsx).
  '/antd/es/input/index.js': { './OTP': NOTHING, './Search': NOTHING, './Group': NOTHING },
  // No label has a help text that opens: Form.Item has `extra`.
  '/antd/es/form/FormItemLabel.js': { '../tooltip': NOTHING },
  // Menus do not collapse to icons.
  '/antd/es/menu/MenuItem.js': { '../tooltip': CHILDREN },
  // Shown in the library's own documents only.
  '/antd/es/select/index.js': { '../_util/PurePanel': NOTHING },
  '/antd/es/auto-complete/AutoComplete.js': { '../_util/PurePanel': NOTHING },
  '/antd/es/auto-complete/index.js': { '../_util/PurePanel': NOTHING },
  // Of all tooltips that share one box.
  '/antd/es/config-provider/index.js': { '../tooltip/UniqueProvider': CHILDREN },
}

export function unused() {
  return {
    name: 'unused',
    apply: 'build',
    enforce: 'pre',
    resolveId(source, importer) {
      const file = Object.keys(UNUSED).find((end) => importer?.endsWith(end))
      return file && UNUSED[file][source]
    },
    load(id) {
      if (id === NOTHING) return 'export default () => null'
      if (id === CHILDREN) return 'export default ({ children }) => children'
      return undefined
    },
  }
}
