package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is when everything is sent in these tests.
var at = time.Unix(1700000000, 0)

func senderOf(t *testing.T, kind noun.ChannelKind) *Sender {
	t.Helper()
	client := post.New(post.Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for _, s := range New(Options{Client: client}) {
		if s := s.(*Sender); s.kind == kind {
			s.now = func() time.Time { return at }
			return s
		}
	}
	t.Fatalf("no sender of the kind %s", kind)
	return nil
}

// kinds are those of this package.
var kinds = noun.ChannelKinds[2:]

// notice is a sample that goes to a server of the test.
func notice(kind noun.ChannelKind, server string) *notify.Notice {
	n := notify.Sample(domain.AlertRunFailed)
	n.Channel = &notify.Channel{ID: 7, AlertChannelSpec: noun.AlertChannelSpec{Name: "on call", Kind: kind, Enabled: true}}
	s := &n.Channel.Secrets
	switch kind {
	case noun.ChannelDingTalk:
		s.URL, s.Secret = server+"/robot/send?access_token=t0ken", "SEC000000000000000000000"
	case noun.ChannelFeishu:
		s.URL, s.Secret = server+"/open-apis/bot/v2/hook/t0ken", "demo-secret"
	case noun.ChannelWeCom:
		s.URL = server + "/cgi-bin/webhook/send?key=t0ken"
	case noun.ChannelSlack:
		s.URL = server + "/services/T0/B0/t0ken"
	case noun.ChannelTeams:
		s.URL = server + "/workflows/1/triggers/manual/paths/invoke?sig=t0ken"
	case noun.ChannelTelegram:
		s.Token, n.Channel.BaseURL, n.Channel.ChatID = "123:t0ken", server, "-1001"
	default:
		s.Token, n.Channel.BaseURL = "t0ken", server
	}
	return n
}

// sent sends a notice and returns what a server got.
func sent(t *testing.T, n *notify.Notice, sink *testenv.Sink) (testenv.HTTPRequest, map[string]any) {
	t.Helper()
	sink.Script(testenv.HTTPAnswer{Status: 200, Body: yes[n.Channel.Kind]})
	require.NoError(t, senderOf(t, n.Channel.Kind).Send(t.Context(), n))
	all := sink.Requests()
	got := all[len(all)-1]
	require.Equal(t, http.MethodPost, got.Method)
	require.Equal(t, "application/json; charset=utf-8", got.Header.Get("Content-Type"))
	var body map[string]any
	require.NoError(t, json.Unmarshal(got.Body, &body))
	return got, body
}

// yes is what the products say when they have taken a message.
var yes = map[noun.ChannelKind]string{
	noun.ChannelDingTalk: `{"errcode":0,"errmsg":"ok"}`, noun.ChannelWeCom: `{"errcode":0,"errmsg":"ok"}`,
	noun.ChannelFeishu: `{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}`,
	noun.ChannelSlack:  "ok", noun.ChannelTeams: "", noun.ChannelTelegram: `{"ok":true,"result":{"message_id":7}}`,
	noun.ChannelPagerDuty: `{"status":"success","message":"Event processed","dedup_key":"k"}`,
	noun.ChannelOpsgenie:  `{"result":"Request will be processed","took":0.302,"requestId":"43a29c5c"}`,
}

func TestSignatures(t *testing.T) {
	// Computed elsewhere: printf '<time>\n<secret>' | openssl dgst -sha256 -hmac '<secret>' -binary | base64
	require.Equal(t, "1zJ/w34EOSVAYr7cu7Vo8LnebmK2/GrCgegtr8mQrqM=", dingTalkSign("SEC000000000000000000000", "1700000000000"))
	// and printf '' | openssl dgst -sha256 -hmac $'<time>\n<secret>' -binary | base64
	require.Equal(t, "mYHw2R2SOm8Rw/sne3lQdmz4sOfntKR+1P/8RKKTwmA=", feishuSign("demo-secret", "1700000000"))
}

func TestDingTalk(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(noun.ChannelDingTalk, sink.URL)
	n.Channel.Mentions = []string{"13800000000"}
	got, body := sent(t, n, sink)
	u, err := url.Parse(got.URI)
	require.NoError(t, err)
	require.Equal(t, "/robot/send", u.Path)
	require.Equal(t, url.Values{"access_token": {"t0ken"}, "timestamp": {"1700000000000"}, "sign": {dingTalkSign(n.Channel.Secrets.Secret, "1700000000000")}}, u.Query())
	require.Equal(t, "text", body["msgtype"])
	require.Equal(t, map[string]any{"atMobiles": []any{"13800000000"}, "isAtAll": false}, body["at"])
	text := body["text"].(map[string]any)["content"].(string)
	require.Equal(t, `[Carillon] Failed: close-day
The run failed for good, after 3 attempts. It will not be tried again.

Job: close-day
Tenant: shop
Executor: billing / billing.CloseDay
Run: 4
Due: 2026-01-15 10:00:00.000 +08:00 (Asia/Shanghai)
Started: 2026-01-15 10:00:00.007 +08:00 (Asia/Shanghai)
Ended: 2026-01-15 10:01:00.000 +08:00 (Asia/Shanghai)
Attempt: 3 of 3
Instance: web-1

no route to "db" <10.0.0.7> *now*
second line \ with 100 %
Open the run: https://carillon.example.com/runs/4 @13800000000`, text)

	n.Channel.Secrets.Secret, n.Channel.Mentions, n.Channel.MentionAll, n.Channel.Language = "", nil, true, noun.LanguageChinese
	got, body = sent(t, n, sink)
	require.Equal(t, "/robot/send?access_token=t0ken", got.URI, "not signed")
	require.Equal(t, map[string]any{"atMobiles": []any{}, "isAtAll": true}, body["at"])
	require.Contains(t, body["text"].(map[string]any)["content"], "执行失败：close-day")
}

func TestFeishu(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(noun.ChannelFeishu, sink.URL)
	n.Channel.Mentions, n.Channel.MentionAll = []string{"ou_1"}, true
	_, body := sent(t, n, sink)
	require.Equal(t, []any{"interactive", "1700000000", feishuSign("demo-secret", "1700000000")}, []any{body["msg_type"], body["timestamp"], body["sign"]})
	card := body["card"].(map[string]any)
	require.Equal(t, map[string]any{"template": "red", "title": map[string]any{"tag": "plain_text", "content": "[Carillon] Failed: close-day"}}, card["header"])
	raw, err := json.Marshal(card["elements"])
	require.NoError(t, err)
	require.Contains(t, string(raw), `{"content":"\u003cat id=ou_1\u003e\u003c/at\u003e \u003cat id=all\u003e\u003c/at\u003e","tag":"lark_md"}`)
	require.Contains(t, string(raw), `"url":"https://carillon.example.com/runs/4"`)
	require.Equal(t, 1, strings.Count(string(raw), "lark_md"), "users' texts are plain")
	n.Channel.Secrets.Secret = ""
	_, body = sent(t, n, sink)
	require.NotContains(t, body, "sign")
}

func TestWeCom(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(noun.ChannelWeCom, sink.URL)
	got, body := sent(t, n, sink)
	require.Equal(t, "/cgi-bin/webhook/send?key=t0ken", got.URI)
	require.Equal(t, "text", body["msgtype"])
	require.NotContains(t, body["text"], "mentioned_list")
	n.Channel.Mentions, n.Channel.MentionAll = []string{"ann"}, true
	n.Execution.Error = strings.Repeat("长", 5000)
	_, body = sent(t, n, sink)
	text := body["text"].(map[string]any)
	require.Equal(t, []any{"ann", "@all"}, text["mentioned_list"])
	content := text["content"].(string)
	require.LessOrEqual(t, len(content), 2048)
	require.Greater(t, len(content), 2000)
	require.Contains(t, content, "长…\nOpen the run: https://carillon.example.com/runs/4")
}

func TestSlack(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(noun.ChannelSlack, sink.URL)
	n.Job.Spec.Name, n.Channel.Mentions, n.Channel.MentionAll = "<!channel> & *all*", []string{"U012"}, true
	_, body := sent(t, n, sink)
	require.Contains(t, body["text"], "[Carillon] Failed: &lt;!channel&gt; &amp; *all*")
	blocks := body["blocks"].([]any)
	require.Equal(t, map[string]any{"type": "plain_text", "text": "[Carillon] Failed: <!channel> & *all*", "emoji": false}, blocks[0].(map[string]any)["text"])
	formatted := 0
	for _, b := range blocks {
		raw, err := json.Marshal(b)
		require.NoError(t, err)
		if strings.Contains(string(raw), "mrkdwn") {
			formatted++
			require.JSONEq(t, `{"type":"section","text":{"type":"mrkdwn","text":"<@U012> <!channel>"}}`, string(raw))
		}
		if fields, ok := b.(map[string]any)["fields"]; ok {
			require.LessOrEqual(t, len(fields.([]any)), 10)
		}
	}
	require.Equal(t, 1, formatted, "users' texts are plain")
}

func TestTeams(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(noun.ChannelTeams, sink.URL)
	_, body := sent(t, n, sink)
	require.Equal(t, "message", body["type"])
	attachment := body["attachments"].([]any)[0].(map[string]any)
	require.Equal(t, "application/vnd.microsoft.card.adaptive", attachment["contentType"])
	card := attachment["content"].(map[string]any)
	require.Equal(t, []any{"AdaptiveCard", "1.4"}, []any{card["type"], card["version"]})
	for _, block := range card["body"].([]any) {
		require.Equal(t, "RichTextBlock", block.(map[string]any)["type"], "text blocks read Markdown")
	}
	require.Equal(t, "https://carillon.example.com/runs/4", card["actions"].([]any)[0].(map[string]any)["url"])
}

func TestTelegram(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(noun.ChannelTelegram, sink.URL)
	n.Channel.ThreadID = 3
	got, body := sent(t, n, sink)
	require.Equal(t, "/bot123:t0ken/sendMessage", got.URI)
	require.Equal(t, []any{"-1001", "HTML", 3.0}, []any{body["chat_id"], body["parse_mode"], body["message_thread_id"]})
	text := body["text"].(string)
	require.Contains(t, text, "<b>[Carillon] Failed: close-day</b>")
	require.Contains(t, text, "<pre>no route to &quot;db&quot; &lt;10.0.0.7&gt; *now*\nsecond line \\ with 100 %</pre>")
	require.Contains(t, text, `<a href="https://carillon.example.com/runs/4">Open the run</a>`)
	n.Execution.Error = strings.Repeat("<", 5000)
	_, body = sent(t, n, sink)
	read := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(body["text"].(string))
	require.LessOrEqual(t, utf8.RuneCountInString(read), maxTelegram+100, "tags aside")
	require.Contains(t, read, "<…</pre>")
}

func TestPagerDuty(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(noun.ChannelPagerDuty, sink.URL)
	got, body := sent(t, n, sink)
	require.Equal(t, "/v2/enqueue", got.URI)
	require.Equal(t, []any{"t0ken", "trigger", n.Group}, []any{body["routing_key"], body["event_action"], body["dedup_key"]})
	payload := body["payload"].(map[string]any)
	require.Equal(t, []any{"Failed: close-day", "shop/billing/web-1", "error", "2026-01-15T02:01:00Z", "run_failed"},
		[]any{payload["summary"], payload["source"], payload["severity"], payload["timestamp"], payload["class"]})
	require.Contains(t, payload["custom_details"], "error")
	n.Phase = notify.PhaseResolve
	_, body = sent(t, n, sink)
	require.Equal(t, map[string]any{"routing_key": "t0ken", "event_action": "resolve", "dedup_key": n.Group, "client": "Carillon"}, body)
}

// What is no trouble opens no incident that somebody would have to close, unless its
// rule calls it critical.
func TestPagerDutySuccess(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(noun.ChannelPagerDuty, sink.URL)
	n.Event.Kind, n.Execution.State = domain.AlertRunSucceeded, domain.Succeeded
	n.Incident = &noun.Incident{Kind: domain.AlertRunSucceeded, Job: n.Job.ID, State: noun.IncidentResolved, Live: true, Severity: noun.SeverityWarning, Events: 1}
	got, body := sent(t, n, sink)
	require.Equal(t, "/v2/change/enqueue", got.URI)
	require.NotContains(t, body, "event_action")
	require.NotContains(t, body, "dedup_key")
	require.Equal(t, "t0ken", body["routing_key"])
	require.Equal(t, []any{map[string]any{"href": "https://carillon.example.com/runs/4", "text": "Open the run"}}, body["links"])
	payload := body["payload"].(map[string]any)
	require.Equal(t, []any{"Succeeded: close-day", "shop/billing/web-1", "2026-01-15T02:01:00Z"}, []any{payload["summary"], payload["source"], payload["timestamp"]})
	require.NotContains(t, payload, "severity", "a change event has none")

	n.Incident.Severity = noun.SeverityCritical
	got, body = sent(t, n, sink)
	require.Equal(t, "/v2/enqueue", got.URI)
	require.Equal(t, []any{"trigger", "critical"}, []any{body["event_action"], body["payload"].(map[string]any)["severity"]})
	n.Phase = notify.PhaseResolve
	_, body = sent(t, n, sink)
	require.Equal(t, []any{"resolve", n.Group}, []any{body["event_action"], body["dedup_key"]})
}

func TestOpsgenie(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(noun.ChannelOpsgenie, sink.URL)
	n.Execution.Error = strings.Repeat("x", 5000)
	got, body := sent(t, n, sink)
	require.Equal(t, []any{"/v2/alerts", "GenieKey t0ken"}, []any{got.URI, got.Header.Get("Authorization")})
	require.Equal(t, []any{"Failed: close-day", n.Group, "P2"}, []any{body["message"], body["alias"], body["priority"]})
	total := 0
	for name, text := range body["details"].(map[string]any) {
		total += len(name) + len(text.(string))
	}
	require.LessOrEqual(t, total, 8000)
	n.Phase = notify.PhaseResolve
	got, _ = sent(t, n, sink)
	require.Equal(t, "/v2/alerts/"+n.Group+"/close?identifierType=alias", got.URI)
	n.Phase = notify.PhaseAcknowledge
	got, _ = sent(t, n, sink)
	require.Equal(t, "/v2/alerts/"+n.Group+"/acknowledge?identifierType=alias", got.URI)
}

// What the products answer, and what follows from it.
func TestAnswers(t *testing.T) {
	after := func(s string) http.Header { return http.Header{"Retry-After": {s}} }
	for _, row := range []struct {
		kind      noun.ChannelKind
		name      string
		status    int
		header    http.Header
		body      string
		fails     bool
		permanent bool
		wait      time.Duration
		text      string
	}{
		{kind: noun.ChannelDingTalk, name: "limited", status: 200, body: `{"errcode":130101,"errmsg":"send too fast, exceed 20 times per minute"}`, fails: true, wait: 10 * time.Minute, text: "send too fast"},
		{kind: noun.ChannelDingTalk, name: "limited, newer", status: 200, body: `{"errcode":410100,"errmsg":"发送速度太快而限流"}`, fails: true, wait: 10 * time.Minute},
		{kind: noun.ChannelDingTalk, name: "bad token", status: 200, body: `{"errcode":300005,"errmsg":"token is not exist"}`, fails: true, permanent: true, text: "token is not exist"},
		{kind: noun.ChannelDingTalk, name: "no keyword", status: 200, body: `{"errcode":310000,"errmsg":"keywords not in content"}`, fails: true, permanent: true, text: "keywords not in content"},
		{kind: noun.ChannelDingTalk, name: "busy", status: 200, body: `{"errcode":-1,"errmsg":"system busy"}`, fails: true},
		{kind: noun.ChannelFeishu, name: "limited", status: 200, body: `{"code":11232,"msg":"create message trigger system rate limit","data":{}}`, fails: true, wait: time.Minute},
		{kind: noun.ChannelFeishu, name: "limited by the gateway", status: 400, header: after("90"), body: `{"code":99991400,"msg":"request trigger frequency limit"}`, fails: true, wait: 90 * time.Second},
		{kind: noun.ChannelFeishu, name: "bad token", status: 200, body: `{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}`, fails: true, permanent: true, text: "access token invalid"},
		{kind: noun.ChannelFeishu, name: "bad sign", status: 200, body: `{"code":19021,"msg":"sign match fail or timestamp is not within one hour from current time"}`, fails: true, permanent: true},
		{kind: noun.ChannelFeishu, name: "bad request", status: 400, body: `{"code":9499,"msg":"Bad Request","data":{}}`, fails: true, permanent: true, text: "9499"},
		{kind: noun.ChannelWeCom, name: "limited", status: 200, body: `{"errcode":45009,"errmsg":"api freq out of limit"}`, fails: true, wait: time.Minute},
		{kind: noun.ChannelWeCom, name: "bad key", status: 200, body: `{"errcode":93000,"errmsg":"invalid webhook url, hint: [16]"}`, fails: true, permanent: true, text: "invalid webhook url"},
		{kind: noun.ChannelSlack, name: "limited", status: 429, header: after("30"), body: `rate_limited`, fails: true, wait: 30 * time.Second},
		{kind: noun.ChannelSlack, name: "gone", status: 404, body: "no_service", fails: true, permanent: true, text: "no_service"},
		{kind: noun.ChannelSlack, name: "malformed", status: 400, body: "invalid_payload", fails: true, permanent: true, text: "invalid_payload"},
		{kind: noun.ChannelSlack, name: "archived", status: 410, body: "channel_is_archived", fails: true, permanent: true},
		{kind: noun.ChannelSlack, name: "no in a 200", status: 200, body: "no_service", fails: true, permanent: true, text: "no_service"},
		{kind: noun.ChannelTeams, name: "taken", status: 202},
		{kind: noun.ChannelTeams, name: "limited", status: 429, header: after("17"), fails: true, wait: 17 * time.Second},
		{kind: noun.ChannelTeams, name: "malformed", status: 400, body: `{"error":{"code":"TriggerInputSchemaMismatch","message":"The input body did not match its schema"}}`, fails: true, permanent: true, text: "TriggerInputSchemaMismatch"},
		{kind: noun.ChannelTeams, name: "bad signature", status: 401, body: `{"error":{"code":"DirectApiAuthorizationRequired"}}`, fails: true, permanent: true},
		{kind: noun.ChannelTeams, name: "limited in a 200", status: 200, body: "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId x", fails: true, wait: time.Minute},
		{kind: noun.ChannelTeams, name: "no in a 200", status: 200, body: "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 413", fails: true, permanent: true},
		{kind: noun.ChannelTelegram, name: "limited", status: 429, body: `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 27","parameters":{"retry_after":27}}`, fails: true, wait: 27 * time.Second, text: "retry after 27"},
		{kind: noun.ChannelTelegram, name: "bad token", status: 401, body: `{"ok":false,"error_code":401,"description":"Unauthorized"}`, fails: true, permanent: true, text: "Unauthorized"},
		{kind: noun.ChannelTelegram, name: "no chat", status: 400, body: `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`, fails: true, permanent: true, text: "chat not found"},
		{kind: noun.ChannelTelegram, name: "moved", status: 400, body: `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1002}}`, fails: true, permanent: true, text: "is -1002 now"},
		{kind: noun.ChannelTelegram, name: "its trouble", status: 502, body: `{"ok":false,"error_code":502,"description":"Bad Gateway"}`, fails: true},
		{kind: noun.ChannelPagerDuty, name: "taken", status: 202, body: yes[noun.ChannelPagerDuty]},
		{kind: noun.ChannelPagerDuty, name: "a change was taken", status: 202, body: `{"status":"success","message":"Change event processed"}`},
		{kind: noun.ChannelPagerDuty, name: "limited", status: 429, body: `{"status":"throttle exceeded"}`, fails: true, wait: time.Minute},
		{kind: noun.ChannelPagerDuty, name: "malformed", status: 400, body: `{"status":"invalid event","message":"Event object is invalid","errors":["Length of 'routing_key' is incorrect (should be 32 characters)"]}`, fails: true, permanent: true, text: "routing_key"},
		{kind: noun.ChannelOpsgenie, name: "taken", status: 202, body: yes[noun.ChannelOpsgenie]},
		{kind: noun.ChannelOpsgenie, name: "limited", status: 429, body: `{"message":"You are making too many requests!","took":0.0,"requestId":"r"}`, fails: true, wait: time.Minute},
		{kind: noun.ChannelOpsgenie, name: "bad key", status: 403, body: `{"message":"Key format is not valid!","took":0.0,"requestId":"r"}`, fails: true, permanent: true, text: "Key format is not valid!"},
		{kind: noun.ChannelOpsgenie, name: "malformed", status: 422, body: `{"message":"Request body is not processable.","took":0.0,"requestId":"r"}`, fails: true, permanent: true},
	} {
		t.Run(string(row.kind)+" "+row.name, func(t *testing.T) {
			sink := testenv.HTTPSink(t)
			sink.Script(testenv.HTTPAnswer{Status: row.status, Header: row.header, Body: row.body})
			err := senderOf(t, row.kind).Send(t.Context(), notice(row.kind, sink.URL))
			if !row.fails {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			var e *notify.SendError
			if errors.As(err, &e) {
				require.False(t, e.Unreachable, "it answered")
				require.Equal(t, row.permanent, e.Permanent, "%v", err)
				require.Equal(t, row.wait, e.RetryAfter, "%v", err)
			} else {
				require.Equal(t, []any{false, time.Duration(0)}, []any{row.permanent, row.wait}, "%v", err)
			}
			require.ErrorContains(t, err, row.text)
			require.NotContains(t, err.Error(), "t0ken")
		})
	}
}

// What all of them have in common: trouble of the server, one that hangs up, and one
// that says something else.
func TestTrouble(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			sink := testenv.HTTPSink(t)
			send := func(a testenv.HTTPAnswer) (notify.SendError, error) {
				sink.Script(a)
				err := senderOf(t, kind).Send(t.Context(), notice(kind, sink.URL))
				require.Error(t, err)
				require.NotContains(t, err.Error(), "t0ken")
				require.NotContains(t, err.Error(), sink.URL, "addresses may hold tokens")
				var e *notify.SendError
				if errors.As(err, &e) {
					return *e, err
				}
				return notify.SendError{}, err
			}
			e, err := send(testenv.HTTPAnswer{Status: 503, Header: http.Header{"Retry-After": {"120"}}, Body: "busy\x1b[31m"})
			require.Equal(t, []any{false, 2 * time.Minute}, []any{e.Permanent, e.RetryAfter}, "%v", err)
			e, err = send(testenv.HTTPAnswer{Status: 500})
			require.False(t, e.Permanent, "%v", err)
			e, err = send(testenv.HTTPAnswer{HangUp: true})
			require.Equal(t, []any{false, true}, []any{e.Permanent, e.Unreachable}, "%v", err)
			e, err = send(testenv.HTTPAnswer{Status: 302, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}})
			require.True(t, e.Permanent, "%v", err)
			e, err = send(testenv.HTTPAnswer{Delay: time.Minute})
			require.True(t, e.Unreachable, "%v", err)
		})
	}
}

func TestAnAnswerThatSaysNeitherYesNorNo(t *testing.T) {
	for _, kind := range []noun.ChannelKind{noun.ChannelDingTalk, noun.ChannelFeishu, noun.ChannelWeCom, noun.ChannelTelegram} {
		for _, body := range []string{"", "<html>welcome</html>", "{", `"ok"`} {
			sink := testenv.HTTPSink(t)
			sink.Script(testenv.HTTPAnswer{Status: 200, Body: body})
			err := senderOf(t, kind).Send(t.Context(), notice(kind, sink.URL))
			require.ErrorContains(t, err, "without saying whether", "%s %q", kind, body)
			var e *notify.SendError
			require.False(t, errors.As(err, &e) && e.Permanent)
		}
	}
}

// Nobody's text makes a message that the product would refuse for its length.
func TestLongTexts(t *testing.T) {
	most := map[noun.ChannelKind]int{
		noun.ChannelDingTalk: 20_000, noun.ChannelFeishu: 20 << 10, noun.ChannelWeCom: 2048 + 200, noun.ChannelSlack: 40_000, noun.ChannelTeams: 28 << 10,
		noun.ChannelTelegram: 4 * maxTelegram * 4, noun.ChannelPagerDuty: 512 << 10, noun.ChannelOpsgenie: 100 << 10,
	}
	for _, kind := range kinds {
		for _, text := range []string{"长", "<&>", "\n"} {
			sink := testenv.HTTPSink(t)
			n := notice(kind, sink.URL)
			long := strings.Repeat(text, 100_000)
			n.Job.Spec.Name, n.Execution.Error, n.Executor.Name, n.Instance, n.Tenant.Name = long[:120], long, long[:120], long, long[:120]
			n.Channel.Templates.Text = "{{.Error}}{{.Error}}{{.Error}}"
			for range 2 {
				got, body := sent(t, n, sink)
				require.LessOrEqual(t, len(got.Body), most[kind], kind)
				require.True(t, utf8.Valid(got.Body))
				if kind == noun.ChannelSlack {
					checkSlack(t, body)
				}
				n.Channel.Templates.Text = ""
			}
		}
	}
}

func checkSlack(t *testing.T, body map[string]any) {
	t.Helper()
	for _, b := range body["blocks"].([]any) {
		block := b.(map[string]any)
		if text, ok := block["text"].(map[string]any); ok {
			limit := map[any]int{"header": 150, "section": 3000}[block["type"]]
			require.LessOrEqual(t, utf8.RuneCountInString(text["text"].(string)), limit)
		}
	}
}

func TestRenderNeedsNoSecrets(t *testing.T) {
	for _, kind := range kinds {
		for _, alert := range []domain.AlertKind{domain.AlertRunFailed, domain.AlertNoExecutor, domain.AlertTest} {
			n := notify.Sample(alert)
			n.Channel = &notify.Channel{AlertChannelSpec: noun.AlertChannelSpec{Name: "x", Kind: kind}}
			got, err := senderOf(t, kind).Render(n)
			require.NoError(t, err)
			require.True(t, json.Valid([]byte(got.Body)), fmt.Sprint(kind, alert))
			require.Equal(t, "application/json", got.ContentType)
		}
	}
}

func TestDefaultAddresses(t *testing.T) {
	for kind, want := range map[noun.ChannelKind]string{
		noun.ChannelTelegram: "https://api.telegram.org/bot123:t0ken/sendMessage", noun.ChannelPagerDuty: "https://events.pagerduty.com/v2/enqueue",
		noun.ChannelOpsgenie: "https://api.opsgenie.com/v2/alerts",
	} {
		s, n := senderOf(t, kind), notice(kind, "")
		require.Equal(t, want, s.address(n, s.baseOf(n), http.Header{}, object{}, at))
	}
}
