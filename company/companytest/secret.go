package companytest

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/secret"
)

// Secret creates a secret whose value is not looked at.
func (d *Desk) Secret(t testing.TB, name string) string {
	t.Helper()
	id := d.ID()
	d.Must(t, Board, "secret.create", secret.SaveSecret{ID: id, Name: name, Sealed: []byte("sealed")}, nil)
	return id
}

func TestSeal(owner, path, plain string) (string, error) {
	return base64.StdEncoding.EncodeToString([]byte(owner + "|" + path + "|" + plain)), nil
}

func TestOpen(t *testing.T, owner string) func(path, sealed string) (string, error) {
	return func(path, sealed string) (string, error) {
		b, err := base64.StdEncoding.DecodeString(sealed)
		plain, ok := strings.CutPrefix(string(b), owner+"|"+path+"|")
		if err != nil || !ok {
			t.Errorf("%q was not sealed for %s at %s", b, owner, path)
		}
		return plain, nil
	}
}
