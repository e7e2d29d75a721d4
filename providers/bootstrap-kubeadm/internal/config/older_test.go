package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// What v1beta2 does not have works for clients of v1beta1.
func TestOlderConfig(t *testing.T) {
	tests := []struct {
		reason string
		spec   bootstrapv1beta1.KubeadmConfigSpec
		joins  bool
		// want is in the data.
		want string
	}{
		{reason: "an empty initConfiguration initializes a control plane", want: "kubeadm init",
			spec: bootstrapv1beta1.KubeadmConfigSpec{InitConfiguration: &bootstrapv1beta1.InitConfiguration{}}},
		{reason: "and so does an empty clusterConfiguration", want: "kubeadm init",
			spec: bootstrapv1beta1.KubeadmConfigSpec{ClusterConfiguration: &bootstrapv1beta1.ClusterConfiguration{}}},
		{reason: "the timeout of the control plane", want: "controlPlaneComponentHealthCheck: 9m0s", spec: bootstrapv1beta1.KubeadmConfigSpec{
			ClusterConfiguration: &bootstrapv1beta1.ClusterConfiguration{APIServer: bootstrapv1beta1.APIServer{
				TimeoutForControlPlane: &metav1.Duration{Duration: 9 * time.Minute}}}}},
		{reason: "which is also that of other machines", joins: true, want: "controlPlaneComponentHealthCheck: 9m0s", spec: bootstrapv1beta1.KubeadmConfigSpec{
			ClusterConfiguration: &bootstrapv1beta1.ClusterConfiguration{APIServer: bootstrapv1beta1.APIServer{
				TimeoutForControlPlane: &metav1.Duration{Duration: 9 * time.Minute}}}}},
		{reason: "the timeout of discovery", joins: true, want: "discovery: 8m0s", spec: bootstrapv1beta1.KubeadmConfigSpec{
			JoinConfiguration: &bootstrapv1beta1.JoinConfiguration{Discovery: bootstrapv1beta1.Discovery{Timeout: &metav1.Duration{Duration: 8 * time.Minute}}}}},
		{reason: "phases are retried", joins: true, want: "kubeadm-bootstrap-script",
			spec: bootstrapv1beta1.KubeadmConfigSpec{UseExperimentalRetryJoin: true}},
		{reason: "the time service with its defaults", joins: true, want: "\nntp: {}\n",
			spec: bootstrapv1beta1.KubeadmConfigSpec{NTP: &bootstrapv1beta1.NTP{}}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			cluster := newCluster()
			if tt.joins {
				initialized(cluster)
			}
			objects := []client.Object{testCA(t), cluster, newMachine("m", true), olderConfig(t, "m", tt.spec)}
			for _, purpose := range []pki.Purpose{pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
				objects = append(objects, secretOf(purpose, true))
			}
			w := newWorld(t, objects...)
			w.mustReconcile(t, "m")
			if data := string(get(t, w, "m", &corev1.Secret{}).Data["value"]); !strings.Contains(data, tt.want) {
				t.Errorf("%q is missing:\n%s", tt.want, data)
			}
		})
	}
}

func TestOlderConfigWithIgnition(t *testing.T) {
	config := olderConfig(t, "w", bootstrapv1beta1.KubeadmConfigSpec{Format: bootstrapv1beta1.Ignition, UseExperimentalRetryJoin: true})
	w := newWorld(t, newCluster(), newMachine("w", false), config)
	w.c.ignition = true
	_, err := w.reconcile(t, "w")
	available := condition.Get(w.config(t, "w"), bootstrapv1.DataSecretAvailableV1Beta1Condition)
	if want := "spec.useExperimentalRetryJoin: is not supported"; !isTerminal(err) || !strings.HasPrefix(available.Message, want) {
		t.Errorf("error %v, condition %+v; want %q", err, available, want)
	}
}

// The hash of a spec is that of v1beta1, which Secrets of earlier versions have: another one would replace all machines of a pool.
func TestSpecHash(t *testing.T) {
	spec := bootstrapv1beta1.KubeadmConfigSpec{
		JoinConfiguration: &bootstrapv1beta1.JoinConfiguration{
			NodeRegistration: bootstrapv1beta1.NodeRegistrationOptions{Taints: []corev1.Taint{}, KubeletExtraArgs: map[string]string{"v": "1", "a": ""}},
			Discovery:        bootstrapv1beta1.Discovery{Timeout: &metav1.Duration{Duration: 1500 * time.Millisecond}},
			Patches:          &bootstrapv1beta1.Patches{},
		},
		ClusterConfiguration: &bootstrapv1beta1.ClusterConfiguration{ClusterName: "x"},
		Files:                []bootstrapv1beta1.File{{Path: "/a", Content: "x"}},
		Users:                []bootstrapv1beta1.User{{Name: "u", Gecos: ptr.To(""), Sudo: ptr.To("x")}},
		Format:               bootstrapv1beta1.CloudConfig, UseExperimentalRetryJoin: true,
	}
	for _, s := range []bootstrapv1beta1.KubeadmConfigSpec{spec, {}, {Format: bootstrapv1beta1.CloudConfig}} {
		text, err := json.Marshal(s)
		testenv.Must(t, err)
		sum := sha256.Sum256(text)
		got, err := specHash(t.Context(), olderConfig(t, "p", s))
		if want := hex.EncodeToString(sum[:8]); err != nil || got != want {
			t.Errorf("hash %s, %v, want %s, of\n%s", got, err, want, text)
		}
	}
}
