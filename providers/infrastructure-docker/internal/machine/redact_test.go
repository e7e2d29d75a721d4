package machine

import "testing"

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"a\n-----BEGIN RSA PRIVATE KEY-----\nx\ny":                                               "a\n[redacted]",
		"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\nb":                           "[redacted]\nb",
		"--certificate-key e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204 end": "--certificate-key [redacted] end",
		"/etc/kubernetes/manifests/kube-apiserver.yaml: not found":                               "/etc/kubernetes/manifests/kube-apiserver.yaml: not found",
		"TG9yZW0gaXBzdW0gZG9sb3Igc2l0IGFtZXQsIGNvbnNlY3RldHVyIGFk":                               "[redacted]",
		"TOKEN=x": "[redacted]",
	} {
		if got := redact(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
