package proto

import "encoding/binary"

// scriptLabel keeps what is signed here apart from anything else that a key signs.
const scriptLabel = "carillon script revision 1\x00"

// ScriptMessage is what Script.signature signs: which revision of which
// tenant's script this is, in which language, and the digest of its content.
func ScriptMessage(tenant, script, revision int64, language string, sha256 []byte) []byte {
	out := make([]byte, 0, len(scriptLabel)+3*8+1+len(language)+len(sha256))
	out = append(out, scriptLabel...)
	for _, n := range []int64{tenant, script, revision} {
		out = binary.BigEndian.AppendUint64(out, uint64(n))
	}
	out = append(out, byte(len(language)))
	out = append(out, language...)
	return append(out, sha256...)
}
