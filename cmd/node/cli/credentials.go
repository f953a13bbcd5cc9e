package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/selvage-mesh/selvage/api/client"
)

const (
	// maxCredentials bounds the file of credentials, in bytes.
	maxCredentials = 1 << 20
	// maxAuthorities bounds a file of certificates, in bytes.
	maxAuthorities = 1 << 20
)

// A Credential holds the key, the trusted certificates and the default company for the
// nodes at one URL.
type Credential struct {
	Key          string   `json:"key,omitempty"`  // of the board, a secret
	User         string   `json:"user,omitempty"` // the key's user, for people
	Fingerprints []string `json:"fingerprints,omitempty"`
	CA           string   `json:"ca,omitempty"`      // PEM
	Company      string   `json:"company,omitempty"` // ID of the default company
}

// credentials are stored by the URL of the API.
type credentials map[string]Credential

// credentialFile is the path of the file: $SELVAGE_CREDENTIALS, or a file in the user's
// configuration directory.
func credentialFile() (string, error) {
	if path := os.Getenv("SELVAGE_CREDENTIALS"); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "selvage", "credentials.json"), err
}

// ReadCredentials returns no credentials if there is no file. A file that other users
// can read is an error, because they may have read it.
func ReadCredentials() (credentials, error) {
	path, err := credentialFile()
	if err != nil {
		return credentials{}, nil // there is no directory for the file
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return credentials{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is open to others: chmod 600 it, and if they may have read it revoke its keys (selvage "+
			"key board list)", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxCredentials+1))
	if err != nil {
		return nil, err
	}
	all := credentials{}
	if len(b) > maxCredentials || json.Unmarshal(b, &all) != nil {
		return nil, fmt.Errorf("%s is damaged: remove it and sign in again (selvage auth login)", path)
	}
	return all, nil
}

// save writes the file atomically, readable by its owner only.
func (all credentials) save() (err error) {
	path, err := credentialFile()
	if err != nil {
		return fmt.Errorf("no place for credentials (set SELVAGE_CREDENTIALS to a file): %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".credentials-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Change updates the credential of the URL; an empty one is deleted.
func (c *CLI) Change(f func(*Credential)) error {
	all, err := ReadCredentials()
	if err != nil {
		return err
	}
	one := all[c.URL()]
	f(&one)
	all[c.URL()] = one
	if one.Key == "" && len(one.Fingerprints) == 0 && one.CA == "" && one.Company == "" {
		delete(all, c.URL())
	}
	c.kept = nil
	return all.save()
}

// Mine returns the stored credential of the URL, overridden by flags and variables.
func (c *CLI) Mine() (Credential, error) {
	if c.kept != nil {
		return *c.kept, nil
	}
	all, err := ReadCredentials()
	if err != nil {
		return Credential{}, err
	}
	one := all[c.URL()]
	if key := cmp.Or(os.Getenv("SELVAGE_API_KEY"), os.Getenv("PAPERCLIP_API_KEY")); key != "" {
		one.Key, one.User = key, ""
	}
	for _, given := range append(strings.Split(os.Getenv("SELVAGE_FINGERPRINT"), ","), c.fingerprints...) {
		if given == "" {
			continue
		}
		plain, err := client.ParseFingerprint(given)
		if err != nil {
			return one, Misuse(err)
		}
		one.Fingerprints = append(one.Fingerprints, plain)
	}
	if path := cmp.Or(c.ca, os.Getenv("SELVAGE_CA")); path != "" {
		f, err := os.Open(path)
		if err != nil {
			return one, Misuse(err)
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxAuthorities))
		if err != nil {
			return one, err
		}
		one.CA = string(b)
	}
	c.kept = &one
	return one, nil
}

// Transport returns a transport to the nodes that the credential trusts, or to the one behind the socket.
func (c *CLI) Transport() (*http.Transport, error) {
	mine, err := c.Mine()
	if err != nil || c.carrier != nil {
		return c.carrier, err
	}
	if c.carrier, err = (client.Trust{Fingerprints: mine.Fingerprints, CA: []byte(mine.CA)}).Transport(); err != nil {
		return nil, err
	}
	if at := c.socket(); at != "" {
		c.carrier.Proxy = nil
		c.carrier.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", at)
		}
	}
	return c.carrier, nil
}

// Client returns the Go client, with the stored credential unless another is given.
func (c *CLI) Client() (*client.Client, error) { return c.Reading(c.freshness(http.MethodGet)) }

// Reading returns a client whose reads have the given freshness.
func (c *CLI) Reading(read string) (*client.Client, error) {
	mine, err := c.Mine()
	if err != nil {
		return nil, err
	}
	transport, err := c.Transport()
	if err != nil {
		return nil, err
	}
	asks, err := client.New(client.Config{Nodes: []string{c.URL()}, Token: mine.Key, Run: os.Getenv("PAPERCLIP_RUN_ID"),
		Read: read, Impatient: true, CutOff: c.cutOff,
		HTTP: &http.Client{Timeout: CallTimeout, Transport: transport}})
	if err != nil {
		return nil, Misuse(err)
	}
	return asks, nil
}

// unreachable explains why there was no answer.
func (c *CLI) unreachable(err error) error {
	if bad, ok := errors.AsType[*client.CertificateError](err); ok {
		return fmt.Errorf("%s: %w\nThe node tells its fingerprint when it starts; if this is it, give it once: selvage "+
			"auth login --fingerprint %s", c.URL(), bad, bad.Fingerprint)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer from %s in time: the node is stuck or overloaded; look at its log, and ask another "+
			"one (--api URL): %w", c.URL(), err)
	}
	if at := c.socket(); at != "" {
		return fmt.Errorf("no answer from the socket %s ($%s): the node may have stopped; --api URL asks another one: %w", at,
			socketEnv, err)
	}
	return fmt.Errorf("no answer from %s: is a node running there? (selvage up, or --api URL): %w", c.URL(), err)
}

// ReadHidden reads a line without echo: from the terminal with a prompt, or the next
// line of standard input.
func ReadHidden(cmd *cobra.Command, lines *bufio.Reader, prompt string) (string, error) {
	var line string
	var err error
	if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprint(cmd.ErrOrStderr(), prompt+": ")
		var b []byte
		b, err = term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr())
		line = string(b)
	} else if line, err = lines.ReadString('\n'); errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	if err != nil {
		return "", Misuse(fmt.Errorf("no %s on standard input: %w", strings.ToLower(prompt), err))
	}
	return strings.TrimRight(line, "\r\n"), nil
}
