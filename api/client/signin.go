package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// sessionCookie is the cookie that holds the token of a sign-in.
const sessionCookie = "paperclip-default.session_token"

// A SignedIn is a user who has signed in. Session is the token of the sign-in, a secret:
// every node accepts it until it is signed out or expires.
type SignedIn struct {
	Session string `json:"-"`
	User    struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Email string `json:"email"`
	} `json:"user"`
}

// SignIn signs a user in. The client keeps its own credential. A wrong address or
// password is an [*Error] of status 401, too many tries are one of 429. It is tried
// once, at one node.
func (c *Client) SignIn(ctx context.Context, email, password string) (SignedIn, error) {
	return c.sign(ctx, "/api/auth/sign-in/email", map[string]string{"email": email, "password": password})
}

// SignUp creates a user and signs them in. An [*Error] of status 422 says that the
// address is taken, 403 that the user may not sign up. Invite is the token of an invite
// where sign-up needs one, else "". It is tried once, at one node.
func (c *Client) SignUp(ctx context.Context, name, email, password, invite string) (SignedIn, error) {
	in := map[string]string{"name": name, "email": email, "password": password}
	if invite != "" {
		in["inviteToken"] = invite
	}
	return c.sign(ctx, "/api/auth/sign-up/email", in)
}

// With returns a client of the same nodes with another credential: a bearer token, or
// the token of a sign-in; "" for none.
func (c *Client) With(token, session string) *Client {
	cfg := c.cfg
	cfg.Token, cfg.Session = token, session
	other := &Client{cfg: cfg, http: c.http, stream: c.stream}
	other.Since(c.Height())
	return other
}

func (c *Client) sign(ctx context.Context, path string, in any) (out SignedIn, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.node()+path, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return out, err
	}
	if resp.StatusCode >= 400 {
		return out, refusal(resp, b)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("answer of POST %s: %w", path, err)
	}
	for _, k := range resp.Cookies() {
		if k.Name == sessionCookie {
			out.Session = k.Value
		}
	}
	if out.Session == "" {
		return out, fmt.Errorf("answer of POST %s: it set no session", path)
	}
	return out, nil
}

// SignOut ends the client's session.
func (c *Client) SignOut(ctx context.Context) error {
	return c.Post(ctx, "/api/auth/sign-out", struct{}{}, nil)
}
