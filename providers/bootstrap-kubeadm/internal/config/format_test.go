package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flatcar/ignition/config/v2_3"
	"github.com/google/go-cmp/cmp"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// What cannot be rendered is reported before anything is waited for, and nothing is created: no lock, no token, no keys.
func TestFormatIsCheckedFirst(t *testing.T) {
	bare := newCluster()
	bare.Status.Initialization.InfrastructureProvisioned = nil
	provided := newMachine("w", false)
	provided.Spec.Bootstrap.DataSecretName = ptr.To("provided")
	relative := bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "relative"}}}
	tests := []struct {
		reason  string
		cluster *clusterv1.Cluster
		machine *clusterv1.Machine
		spec    bootstrapv1.KubeadmConfigSpec
		gate    bool
		err     string
	}{
		{reason: "without the gate, while the infrastructure is not ready", cluster: bare, machine: newMachine("w", false), err: "spec.format: ignition requires the feature gate"},
		{reason: "without the gate, before it takes the lock", cluster: newCluster(), machine: newMachine("w", true), err: "spec.format: ignition requires the feature gate"},
		{reason: "an invalid field, while the infrastructure is not ready", cluster: bare, machine: newMachine("w", false), spec: relative, gate: true, err: "spec.files[0].path: must be an absolute path"},
		{reason: "an invalid field, before it takes the lock", cluster: newCluster(), machine: newMachine("w", true), spec: relative, gate: true, err: "spec.files[0].path: must be an absolute path"},
		{reason: "an invalid field, before a token is created", cluster: initialized(newCluster()), machine: newMachine("w", false), spec: relative, gate: true, err: "spec.files[0].path: must be an absolute path"},
		{reason: "but not if no data is generated", cluster: newCluster(), machine: provided, spec: relative},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			spec := tt.spec
			spec.Format, spec.ClusterConfiguration = bootstrapv1.Ignition, clusterSpec().ClusterConfiguration
			w := newWorld(t, tt.cluster, tt.machine, newConfig("w", spec), testCA(t))
			w.c.ignition = tt.gate
			_, err := w.reconcile(t, "w")
			if (err != nil) != (tt.err != "") || err != nil && !isTerminal(err) || len(w.created(t)) != 0 || len(w.workload.Requests) != 0 {
				t.Errorf("error %v, created %q, %d requests for a token", err, w.created(t), len(w.workload.Requests))
			}
			available := condition.Get(w.config(t, "w"), bootstrapv1.DataSecretAvailableV1Beta1Condition)
			if tt.err == "" {
				if available.Status != corev1.ConditionTrue {
					t.Errorf("DataSecretAvailable is %+v", available)
				}
				return
			}
			if available.Reason != bootstrapv1.DataSecretGenerationFailedV1Beta1Reason || available.Severity != clusterv1.ConditionSeverityWarning || !strings.HasPrefix(available.Message, tt.err) {
				t.Errorf("DataSecretAvailable is %+v", available)
			}
		})
	}
}

func TestIgnitionData(t *testing.T) {
	users := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}, Data: map[string][]byte{"file": []byte("from a Secret"), "passwd": []byte("$6$x")}}
	spec := bootstrapv1.KubeadmConfigSpec{
		Format: bootstrapv1.Ignition, ClusterConfiguration: clusterSpec().ClusterConfiguration,
		Files:    []bootstrapv1.File{{Path: "/f", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "mine", Key: "file"}}}},
		Users:    []bootstrapv1.User{{Name: "u", PasswdFrom: bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: "mine", Key: "passwd"}}}},
		Ignition: bootstrapv1.IgnitionSpec{ContainerLinuxConfig: bootstrapv1.ContainerLinuxConfig{AdditionalConfig: "bogus: x\n"}},
	}
	tests := []struct {
		reason       string
		cluster      *clusterv1.Cluster
		controlPlane bool
		command      string
		kinds        []string
		certificates bool
	}{
		{reason: "the first control plane machine", cluster: newCluster(), controlPlane: true, command: "kubeadm init", kinds: []string{"ClusterConfiguration", "InitConfiguration"}, certificates: true},
		{reason: "another one", cluster: initialized(newCluster()), controlPlane: true, command: "kubeadm join", kinds: []string{"JoinConfiguration"}, certificates: true},
		{reason: "a worker", cluster: initialized(newCluster()), command: "kubeadm join", kinds: []string{"JoinConfiguration"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			objects := []client.Object{testCA(t), users, tt.cluster, newMachine("m", tt.controlPlane), newConfig("m", spec)}
			for _, p := range []pki.Purpose{pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
				objects = append(objects, secretOf(p, true))
			}
			w := newWorld(t, objects...)
			w.c.ignition = true
			w.mustReconcile(t, "m")
			secret := get(t, w, "m", &corev1.Secret{})
			if format := string(secret.Data["format"]); format != "ignition" {
				t.Errorf("format %q", format)
			}
			config, report, err := v2_3.Parse(secret.Data["value"])
			if err != nil || !json.Valid(secret.Data["value"]) {
				t.Fatalf("Ignition rejects the document: %v, %s", err, report.String())
			}
			files := map[string]string{}
			for _, f := range config.Storage.Files {
				content, err := dataurl.DecodeString(f.Contents.Source)
				if err != nil {
					t.Fatal(err)
				}
				files[f.Path] = string(content.Data)
			}
			if files["/f"] != "from a Secret" || !strings.Contains(files["/etc/kubeadm.sh"], "\n"+tt.command+" --config /etc/kubeadm.yml\n") {
				t.Errorf("files %q", files)
			}
			for _, kind := range tt.kinds {
				if !strings.Contains(files["/etc/kubeadm.yml"], "kind: "+kind+"\n") {
					t.Errorf("kubeadm's configuration has no %s:\n%s", kind, files["/etc/kubeadm.yml"])
				}
			}
			if _, ok := files["/etc/kubernetes/pki/ca.key"]; ok != tt.certificates {
				t.Errorf("certificates: %t, want %t", ok, tt.certificates)
			}
			if diff := cmp.Diff(ptr.To("$6$x"), config.Passwd.Users[0].PasswordHash); diff != "" {
				t.Errorf("password, -want +got:\n%s", diff)
			}
			const want = "Warning IgnitionWarning spec.ignition.containerLinuxConfig.additionalConfig: line 1, column 1: "
			if events := w.Events(); len(events) != 1 || !strings.HasPrefix(events[0], want) {
				t.Errorf("events %q, want one that starts with %q", events, want)
			}
		})
	}
}

// A value from a Secret can be fixed without a change of the config, so it is tried again. The error does not contain it.
func TestInvalidValuesFromSecrets(t *testing.T) {
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}, Data: map[string][]byte{"k": []byte(marker + "\n:")}}
	file := bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition,
		Files: []bootstrapv1.File{{Path: "/f", Encoding: bootstrapv1.Base64, ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "mine", Key: "k"}}}}}
	password := bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition,
		Users: []bootstrapv1.User{{Name: "u", PasswdFrom: bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: "mine", Key: "k"}}}}}
	for want, spec := range map[string]bootstrapv1.KubeadmConfigSpec{"spec.files[0].content: must be base64": file, "spec.users[0].passwd: must be one line": password} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t, testCA(t), mine.DeepCopy(), initialized(newCluster()), newMachine("w", false), newConfig("w", spec))
			w.c.ignition = true
			_, err := w.reconcile(t, "w")
			message := condition.Get(w.config(t, "w"), bootstrapv1.DataSecretAvailableV1Beta1Condition).Message
			if err == nil || isTerminal(err) || !strings.HasPrefix(message, want) || strings.Contains(message+err.Error(), marker) {
				t.Errorf("error %v, condition %q", err, message)
			}
		})
	}
}
