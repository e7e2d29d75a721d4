package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// marker is what must not be seen anywhere.
const marker = "hunter2-hunter2"

// repeats rejects new Secrets and quotes them.
func repeats(r fakeapi.Request) error {
	secret, ok := r.Object.(*corev1.Secret)
	if !ok || r.Verb != "create" {
		return nil
	}
	err := apierrors.NewForbidden(corev1.Resource("secrets"), secret.Name, fmt.Errorf("%s: %s", marker, secret.Data))
	err.ErrStatus.Reason = metav1.StatusReason(marker) // a hostile API server may return any reason
	return err
}

func TestSecretsAreNotShown(t *testing.T) {
	from := func(key string) bootstrapv1.KubeadmConfigSpec {
		return bootstrapv1.KubeadmConfigSpec{
			Files: []bootstrapv1.File{{Path: "/f", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "mine", Key: key}}}},
		}
	}
	password := bootstrapv1.KubeadmConfigSpec{Users: []bootstrapv1.User{{Name: "u", PasswdFrom: bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: "mine", Key: "binary"}}}}}
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}, Data: map[string][]byte{
		"text": []byte(marker), "binary": []byte(marker + "\xff\xfe"), "large": []byte(strings.Repeat(marker, corev1.MaxSecretSize/len(marker))),
	}}
	twice := from("large")
	twice.Files = append(twice.Files, bootstrapv1.File{Path: "/g", Content: marker + marker})
	badCA := pki.NewSecret(types.NamespacedName{Namespace: "default", Name: "test"}, pki.ClusterCA, pki.Pair{Certificate: []byte(marker), Key: []byte(marker)}.Data(), nil)
	damaged := lockHeld(`{"machineName":` + marker)
	tests := []struct {
		reason     string
		objects    []client.Object
		begins     bool // the machine would initialize the control plane
		spec       bootstrapv1.KubeadmConfigSpec
		management func(fakeapi.Request) error
		workload   func(fakeapi.Request) error
	}{
		{reason: "the key is missing", objects: []client.Object{testCA(t)}, spec: from("none")},
		{reason: "the file is not text", objects: []client.Object{testCA(t)}, spec: from("binary")},
		{reason: "the password is not text", objects: []client.Object{testCA(t)}, spec: password},
		{reason: "all files are too large", objects: []client.Object{testCA(t)}, spec: twice},
		{reason: "the data is rejected", objects: []client.Object{testCA(t)}, spec: from("text"), management: repeats},
		{reason: "the token is rejected", objects: []client.Object{testCA(t)}, workload: repeats},
		{reason: "the CA is invalid", objects: []client.Object{badCA}},
		{reason: "keys are rejected", begins: true, spec: clusterSpec(), management: repeats},
		{reason: "the lock has other content", objects: []client.Object{damaged}, begins: true, spec: clusterSpec()},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			cluster := newCluster()
			if !tt.begins {
				cluster = initialized(cluster)
			}
			w := newWorld(t, append(tt.objects, mine, cluster, newMachine("m", tt.begins), newConfig("m", tt.spec))...)
			w.Before, w.workload.Before = tt.management, tt.workload
			var shown strings.Builder
			logger := funcr.New(func(prefix, args string) { shown.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 10})
			_, err := w.runner.Reconcile(ctrl.LoggerInto(t.Context(), logger), request("m"))
			config := w.config(t, "m")
			if ptr.Deref(config.Status.Initialization.DataSecretCreated, false) {
				t.Fatal("nothing went wrong")
			}
			fmt.Fprintf(&shown, "%v %+v %#v\n%+v", err, err, config.Status, config.Annotations)
			shown.WriteString(strings.Join(w.Events(), "\n"))
			for _, form := range []string{marker, base64.StdEncoding.EncodeToString([]byte(marker))[:16]} {
				if i := strings.Index(shown.String(), form); i >= 0 {
					t.Errorf("a secret is shown: ...%s", shown.String()[max(0, i-200):i+len(form)])
				}
			}
			if available := condition.Get(config, clusterv1.ReadyV1Beta1Condition); available == nil && err == nil {
				t.Error("the error must be reported")
			}
		})
	}
}

func TestDataTooLargeForASecret(t *testing.T) {
	large := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "large"}, Data: map[string][]byte{"k": []byte(strings.Repeat("x", 600_000))}}
	file := func(path string) bootstrapv1.File {
		return bootstrapv1.File{Path: path, ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "large", Key: "k"}}}
	}
	many := bootstrapv1.KubeadmConfigSpec{}
	for i := range 1000 {
		many.Files = append(many.Files, file(fmt.Sprintf("/%d", i)))
	}
	// A byte that is not a letter is quoted as four.
	escaped := bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/f", Content: strings.Repeat("\x01", 300_000)}}}
	tests := []struct {
		reason string
		spec   bootstrapv1.KubeadmConfigSpec
		err    string
	}{
		{reason: "one large file fits", spec: bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{file("/a")}}},
		{reason: "two do not", spec: bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{file("/a"), file("/b")}}, err: "spec.files: more than 1048576 bytes"},
		{reason: "a thousand are not even read", spec: many, err: "spec.files: more than 1048576 bytes"},
		{reason: "what grows when it is rendered", spec: escaped, err: "the data has 1"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, testCA(t), large, initialized(newCluster()), newMachine("w", false), newConfig("w", tt.spec))
			_, err := w.reconcile(t, "w")
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || !isTerminal(err)) {
				t.Fatalf("error %v, want one that contains %q and is not tried again", err, tt.err)
			}
			reads := 0
			for _, read := range w.LiveReads {
				if read == "get Secret large" {
					reads++
				}
			}
			if reads != 1 && tt.reason != "what grows when it is rendered" {
				t.Errorf("the Secret was read %d times", reads)
			}
			if err == nil {
				return
			}
			available := condition.Get(w.config(t, "w"), bootstrapv1.DataSecretAvailableV1Beta1Condition)
			if available == nil || available.Reason != bootstrapv1.DataSecretGenerationFailedV1Beta1Reason || !strings.Contains(available.Message, tt.err) || len(available.Message) > 500 {
				t.Errorf("DataSecretAvailable is %+v", available)
			}
		})
	}
}

func isTerminal(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }
