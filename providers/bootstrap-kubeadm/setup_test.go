package kubeadm

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestKeyAlgorithmFlag(t *testing.T) {
	for value, wantErr := range map[string]string{
		"RSA-3072":   "",
		"":           "", // a variable of the manifests that is not set
		"ECDSA-P256": "",
		"RSA":        "use one of ECDSA-P256, ECDSA-P384, RSA-2048, RSA-3072, RSA-4096",
	} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		NewComponent().AddFlags(fs)
		if got := fs.Lookup("key-algorithm").DefValue; got != "RSA-2048" {
			t.Errorf("the default is %q", got)
		}
		err := fs.Parse([]string{"--key-algorithm=" + value})
		if (err == nil) != (wantErr == "") || err != nil && !(strings.Contains(err.Error(), wantErr) && strings.Contains(err.Error(), "--key-algorithm")) {
			t.Errorf("%s: error %v, want %q and the flag's name", value, err, wantErr)
		}
	}
}
