package chat

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
)

// dingTalk is a group's custom robot. Its messages are text and not its Markdown,
// which knows no way to take a sign for itself.
var dingTalk = product{
	kind: noun.ChannelDingTalk,
	message: func(n *notify.Notice, c *notify.Content) object {
		text := plain(n, c, 8<<10)
		for _, mobile := range n.Channel.Mentions {
			text += " @" + mobile // it is called only where the text says so
		}
		return object{
			"msgtype": "text", "text": object{"content": text},
			"at": object{"atMobiles": append([]string{}, n.Channel.Mentions...), "isAtAll": n.Channel.MentionAll},
		}
	},
	address: func(n *notify.Notice, base string, _ http.Header, _ object, now time.Time) string {
		if n.Channel.Secrets.Secret == "" {
			return base
		}
		at := strconv.FormatInt(now.UnixMilli(), 10)
		sign := url.Values{"timestamp": {at}, "sign": {dingTalkSign(n.Channel.Secrets.Secret, at)}}.Encode()
		if strings.Contains(base, "?") {
			return base + "&" + sign
		}
		return base + "?" + sign
	},
	verdict: func(a post.Answer) error {
		return errCode(a, map[int64]time.Duration{-1: 0, 130101: 10 * time.Minute, 410100: 10 * time.Minute})
	},
}

// dingTalkSign signs the time in milliseconds.
func dingTalkSign(secret, at string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "\n" + secret))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// errCode reads answers of DingTalk and WeCom, which are 200 with a number that is
// not 0. retry are those that may get better, with the wait that they ask for.
func errCode(a post.Answer, retry map[int64]time.Duration) error {
	if a.Status/100 != 2 {
		return nil
	}
	var said struct {
		Code    *int64 `json:"errcode"`
		Message string `json:"errmsg"`
	}
	if err := json.Unmarshal(a.Body, &said); err != nil || said.Code == nil {
		return unreadable(a)
	}
	if *said.Code == 0 {
		return nil
	}
	err := refused(*said.Code, said.Message)
	if wait, ok := retry[*said.Code]; ok {
		return later(err, wait)
	}
	return notify.Permanent(err)
}
