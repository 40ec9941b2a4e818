package explain

import (
	"fmt"
	"regexp"
	"strings"
)

// phrase is a message that an admin node writes into rows, in English, and what
// it is in Chinese. %d and %s stand for numbers and names in both, in the same
// order.
type phrase struct{ en, zh string }

// slotsTaken ends most of them.
var slotsTaken = phrase{" (%d of %d slots are taken)", "（已用槽位 %d/%d）"}

var phrases = []phrase{
	{"the executor is disabled", "执行器已停用"},
	{"no instance that serves the handler is connected", "没有提供该处理器的实例在线"},
	{"no connected instance that serves the handler has the labels %s", "在线且提供该处理器的实例都没有标签 %s"},
	{"no instance that could take a shard is online", "没有可以接收分片的实例在线"},
	{"no instance that serves the handler can write its journal", "提供该处理器的实例都无法写入 journal"},
	{"inputs of other runs are still on their way to the instances that serve the handler", "其他运行的输入仍在发往提供该处理器的实例的途中"},
	{"the free slots are kept for a run before this one that takes more of them", "空闲槽位已留给排在前面、需要更多槽位的运行"},
	{"a run of the handler takes %d slots, and no instance that it may go to has so many free", "该处理器的一次运行占用 %d 个槽位，可用的实例都没有这么多空闲槽位"},
	{"the one instance that the routing strategy %s takes is full", "路由策略 %s 选择的那个实例已满"},
	{"every instance that could take it is full%s, and %d cannot write their journals", "可以接收它的实例都已满%s，另有 %d 个无法写入 journal"},
	{"every instance that serves the handler was full a moment ago", "刚才提供该处理器的实例都已满"},
	{"every instance that serves the handler and has the labels %s is full", "提供该处理器且带有标签 %s 的实例都已满"},
	{"every instance that serves the handler is full", "提供该处理器的实例都已满"},
	{"the instance that the shard is for is not connected", "该分片所属的实例未连接"},
	{"another instance takes the shard", "由另一个实例接收该分片"},
	{"the connection to the instance broke before it answered", "实例应答之前连接中断"},
	{"no grant came in time", "未及时收到开始许可"},
}

// reading is a phrase ready to be found in a message.
type reading struct {
	pattern *regexp.Regexp
	zh      string
}

func read(p phrase, before, after string) reading {
	text := strings.NewReplacer("%d", `(\d+)`, "%s", `(.*?)`).Replace(regexp.QuoteMeta(p.en))
	return reading{regexp.MustCompile(before + text + after), strings.ReplaceAll(p.zh, "%d", "%s")}
}

var (
	slotsReading = read(slotsTaken, "", "")
	readings     = func() (out []reading) {
		for _, p := range phrases {
			out = append(out, read(p, "^", "$"))
		}
		return out
	}()
)

func (r reading) fill(values []string) string {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return fmt.Sprintf(r.zh, args...)
}

// told is a message out of a row in both languages. What no admin node wrote,
// such as the words of an instance, stays as it is.
func told(message string) Text {
	text, slots := message, ""
	if found := slotsReading.pattern.FindStringSubmatch(message); found != nil {
		slots = slotsReading.fill(found[1:])
		text = strings.Replace(message, found[0], "", 1)
	}
	for _, r := range readings {
		found := r.pattern.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		if !strings.Contains(r.zh, "已满%s") {
			return Text{message, r.fill(found[1:]) + slots}
		}
		found[1] = slots // it stands in the middle
		return Text{message, r.fill(found[1:])}
	}
	return Text{message, message}
}
