package hostile

import (
	"testing"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

// Whoever adds a type of frame that an executor sends also says how it floods.
func TestEveryTypeOfFrameFloods(t *testing.T) {
	want := map[string]int{"LogBatch": 0}
	for _, m := range []gproto.Message{&proto.ControlToAdmin{}, &proto.CommandToAdmin{}} {
		d := m.ProtoReflect().Descriptor()
		fields := d.Oneofs().ByName("body").Fields()
		for i := range fields.Len() {
			want[string(d.Name())+"."+string(fields.Get(i).Name())] = 0
		}
	}
	for _, s := range shapes() {
		if _, known := want[s.kind]; !known {
			t.Errorf("%s is no type of frame that an executor sends", s.kind)
		}
		want[s.kind]++
		frame, err := encoded(s.make(newBoot()))
		if err != nil {
			t.Errorf("%s: %v", s.kind, err)
		}
		t.Logf("%s: %d bytes", s.kind, len(frame))
	}
	for kind, n := range want {
		if n == 0 {
			t.Errorf("%s has no flood", kind)
		}
	}
}
