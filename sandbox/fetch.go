package sandbox

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// fetchTime bounds one fetch, maxFetched what is read of its answer.
	fetchTime  = 30 * time.Second
	maxFetched = 1 << 20
	maxHeaders = 32
)

// Egress says where guests may fetch from.
type Egress struct {
	// Hosts are names or addresses, with a port when it is not the scheme's own;
	// "*.example.com" stands for all names below example.com.
	Hosts []string
	// Private are networks that are not public and may be reached nevertheless.
	Private []netip.Prefix
	// Before is asked about each fetch that may go to its host; a refusal of it is the guest's answer. Optional.
	Before func(ctx context.Context, method string, to *url.URL, request json.RawMessage) error
	// Seen is told of each fetch that was tried, with status 0 when nothing was
	// answered. Optional.
	Seen func(method, host string, status int)
}

// reserved are networks that are not public beyond what netip knows, and those whose
// addresses hold one of version 4, which need not be.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("192.88.99.0/24"),
}

var errPrivate = errors.New("the address is private or reserved")

// MayReach reports whether an address with a port, as it is dialled, is public or in
// one of the private networks.
func MayReach(address string, private []netip.Prefix) bool {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return false
	}
	ip := at.Addr().Unmap().WithZone("")
	in := func(p netip.Prefix) bool { return p.Contains(ip) }
	return slices.ContainsFunc(private, in) || ip.IsGlobalUnicast() && !ip.IsPrivate() &&
		!slices.ContainsFunc(reserved, in)
}

// mayReach refuses an address, as it is dialled, that is not public.
func (e Egress) mayReach(_, address string, _ syscall.RawConn) error {
	if !MayReach(address, e.Private) {
		return errPrivate
	}
	return nil
}

// allows tells whether the list has the host of a URL.
func (e Egress) allows(u *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "" || strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return false // a name in other letters is another spelling of an xn-- name, which lists and policies have
	}
	if p := u.Port(); p != "" && !(u.Scheme == "http" && p == "80" || u.Scheme == "https" && p == "443") {
		host = net.JoinHostPort(host, p)
	}
	return slices.ContainsFunc(e.Hosts, func(h string) bool {
		h = strings.ToLower(h)
		if below, ok := strings.CutPrefix(h, "*."); ok {
			name, found := strings.CutSuffix(host, "."+below)
			return found && name != ""
		}
		return h == host
	})
}

// A fetch is the request of "http.fetch"; its answer is {"status", "headers",
// "body"} with "bodyBase64" instead of a body that is not text.
type fetch struct {
	Method  string            `json:"method"` // GET unless given
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// Fetch makes HTTP requests to the hosts that are listed, and to public addresses
// only, whatever a name resolves to. No proxy is used and no redirect followed.
func Fetch(e Egress) HostFunc {
	dialer := &net.Dialer{Timeout: fetchTime, Control: e.mayReach}
	client := &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true,
			TLSHandshakeTimeout: fetchTime, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       fetchTime,
	}
	return func(ctx context.Context, request json.RawMessage) (any, error) {
		var f fetch
		if err := json.Unmarshal(request, &f); err != nil || len(f.Headers) > maxHeaders {
			return nil, &HostError{Code: "BadRequest", Message: "want method, url, headers and body"}
		}
		if f.Method == "" {
			f.Method = http.MethodGet
		}
		u, err := url.Parse(f.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			return nil, &HostError{Code: "BadRequest", Message: "url is not one of http or https"}
		}
		if !e.allows(u) {
			return nil, &HostError{Code: string(HostCallDenied), Message: "host " + u.Host + " is not on the list"}
		}
		req, err := http.NewRequestWithContext(ctx, f.Method, u.String(), strings.NewReader(f.Body))
		if err != nil {
			return nil, &HostError{Code: "BadRequest", Message: "the method is malformed"}
		}
		for k, v := range f.Headers {
			if !strings.EqualFold(k, "Host") {
				req.Header.Set(k, v)
			}
		}
		if e.Before != nil {
			if err := e.Before(ctx, req.Method, u, request); err != nil {
				return nil, err
			}
		}
		res, err := client.Do(req)
		status := 0
		if err == nil {
			status = res.StatusCode
		}
		if e.Seen != nil {
			e.Seen(req.Method, u.Host, status)
		}
		if err != nil {
			if errors.Is(err, errPrivate) {
				return nil, &HostError{Code: string(HostCallDenied), Message: errPrivate.Error()}
			}
			return nil, &HostError{Code: "Unavailable", Message: "no answer from " + u.Host}
		}
		defer res.Body.Close()
		return fetched(res)
	}
}

func fetched(res *http.Response) (any, error) {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxFetched+1))
	if err != nil {
		return nil, &HostError{Code: "Unavailable", Message: "the answer broke off"}
	}
	if len(b) > maxFetched {
		return nil, &HostError{Code: "TooLarge", Message: "the answer is larger than 1 MiB"}
	}
	headers := map[string]string{}
	for k, v := range res.Header {
		headers[strings.ToLower(k)] = strings.Join(v, ", ")
	}
	answer := map[string]any{"status": res.StatusCode, "headers": headers}
	if utf8.Valid(b) && !bytes.ContainsRune(b, 0) {
		answer["body"] = string(b)
	} else {
		answer["bodyBase64"] = base64.StdEncoding.EncodeToString(b)
	}
	return answer, nil
}
