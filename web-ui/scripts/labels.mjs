// Labels that the component library has in English only. An icon of it is decoration: each
// button has a name of its own. The two arrows of a number field are for the pointer, and the
// field itself tells its value.
const HIDDEN = { '/@ant-design/icons/es/components/AntdIconLight.js': '"aria-label": icon.name', '/@rc-component/input-number/es/StepHandler.js': '"aria-label": isUpAction ? \'Increase Value\' : \'Decrease Value\'' }

export function labels() {
  return {
    name: 'labels',
    apply: 'build',
    enforce: 'pre',
    transform(code, id) {
      const file = Object.keys(HIDDEN).find((end) => id.endsWith(end))
      if (!file) return undefined
      if (!code.includes(HIDDEN[file])) this.error(`${file} has changed: it has no ${HIDDEN[file]}`)
      return { code: code.replace(HIDDEN[file], '"aria-hidden": true'), map: null }
    },
  }
}
