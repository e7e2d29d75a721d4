package journey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/sshtest"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// Variables of the processes in which this test binary stands for a program of a Host.
const (
	programVariable    = "SIMULATED_PROGRAM"
	rootVariable       = "SIMULATED_ROOT"
	hostVariable       = "SIMULATED_HOST"
	kubeconfigVariable = "SIMULATED_KUBECONFIG"
)

// simulation gives a Host its simulated programs.
func simulation(t *testing.T, s *sshtest.Server, name, kubeconfig string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.Program(t, "hostname", "echo "+name)
	for _, program := range []string{"cloud-init", "kubeadm"} {
		s.Program(t, program, fmt.Sprintf("%s=%s %s='%s' %s=%s %s='%s' exec '%s' \"$@\"", programVariable, program, rootVariable, s.Root,
			hostVariable, name, kubeconfigVariable, kubeconfig, self))
	}
}

// simulate does what a program of a Host does.
func simulate(program string, args []string) error {
	ctx, root := context.Background(), os.Getenv(rootVariable)
	switch program + " " + strings.Join(args, " ") {
	case "cloud-init modules --mode=final":
		return cloudInit(root)
	case "kubeadm reset --force":
		return os.RemoveAll(filepath.Join(root, "etc/kubernetes"))
	}
	if program == "kubeadm" && len(args) > 2 && args[1] == "--config" {
		return kubeadm(ctx, args[0], args[2])
	}
	return nil // other stages of cloud-init
}

// cloudInit writes the files and runs the commands of the seed's user data.
func cloudInit(root string) error {
	seed := filepath.Join(root, "var/lib/cloud/seed/nocloud")
	raw, err1 := os.ReadFile(filepath.Join(seed, "meta-data"))
	data, err2 := os.ReadFile(filepath.Join(seed, "user-data"))
	var meta map[string]string
	if err := errors.Join(err1, err2, yaml.Unmarshal(raw, &meta)); err != nil {
		return err
	}
	text := string(data)
	for name, value := range meta {
		text = strings.ReplaceAll(text, "{{ ds.meta_data."+strings.ReplaceAll(name, "-", "_")+" }}", value)
	}
	for _, folder := range []string{"/var/lib/", "/etc/", "/run/"} {
		text = strings.ReplaceAll(text, folder, root+folder)
	}
	var config struct {
		WriteFiles []struct{ Path, Content, Permissions string } `json:"write_files"`
		RunCmd     []string                                      `json:"runcmd"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	for _, file := range config.WriteFiles {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file.Path), 0o700), os.WriteFile(file.Path, []byte(file.Content), 0o600)); err != nil {
			return err
		}
	}
	for _, command := range config.RunCmd {
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", command, err, out)
		}
	}
	return nil
}

// configuration is what the simulation knows of kubeadm's, in its v1beta4.
type configuration struct {
	Kind                 string
	ControlPlaneEndpoint string
	KubernetesVersion    string
	NodeRegistration     struct {
		Name             string
		KubeletExtraArgs []struct{ Name, Value string }
	}
	Discovery struct {
		BootstrapToken struct {
			APIServerEndpoint, Token string
			CACertHashes             []string
		}
	}
}

// kubeadm makes what kubeadm and the kubelet that it starts make in the API server, and refuses what they refuse: a CA that is not that of
// the API server, and a token that it does not have.
func kubeadm(ctx context.Context, command, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var cluster, node configuration
	for document := range bytes.SplitSeq(raw, []byte("---\n")) {
		var c configuration
		if err := yaml.Unmarshal(document, &c); err != nil {
			return err
		}
		switch c.Kind {
		case "ClusterConfiguration":
			cluster = c
		case "InitConfiguration", "JoinConfiguration":
			node = c
		}
	}
	if command == "join" {
		c, err := connect(os.Getenv(kubeconfigVariable))
		return errors.Join(err, trusted(ctx, c, node), register(ctx, c, node, nil))
	}
	admin, err := adminKubeconfig(cluster)
	if err != nil {
		return err
	}
	c, err := connect(admin)
	if err != nil {
		return err
	}
	uploaded := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": string(raw)}}
	return errors.Join(c.Create(ctx, uploaded), register(ctx, c, node, map[string]string{"node-role.kubernetes.io/control-plane": ""}))
}

// adminKubeconfig writes admin.conf from the CA that the bootstrap data brought.
func adminKubeconfig(cluster configuration) (string, error) {
	folder := filepath.Join(os.Getenv(rootVariable), "etc/kubernetes")
	certificate, err1 := os.ReadFile(filepath.Join(folder, "pki/ca.crt"))
	key, err2 := os.ReadFile(filepath.Join(folder, "pki/ca.key"))
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	ca, err := pki.ParseCA(certificate, key)
	if err != nil {
		return "", err
	}
	admin, err := pki.NewKubeconfig("demo", "https://"+cluster.ControlPlaneEndpoint, ca, time.Now())
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "admin.conf")
	return path, os.WriteFile(path, admin, 0o600)
}

// trusted checks the token and the CA's hash.
func trusted(ctx context.Context, c client.Client, node configuration) error {
	given := node.Discovery.BootstrapToken
	config, err := clientcmd.LoadFromFile(os.Getenv(kubeconfigVariable))
	if err != nil {
		return err
	}
	api := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	ca, err := pki.ParseCA(api.CertificateAuthorityData, nil)
	if err != nil {
		return err
	}
	if api.Server != "https://"+given.APIServerEndpoint || len(given.CACertHashes) != 1 || given.CACertHashes[0] != pki.PublicKeyHash(ca.Certificate) {
		return fmt.Errorf("the API server at %s is not trusted", given.APIServerEndpoint)
	}
	id, secret, _ := strings.Cut(given.Token, ".")
	token := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id}, token); err != nil {
		return err
	}
	if string(token.Data["token-secret"]) != secret {
		return errors.New("the token is not valid")
	}
	return nil
}

// register makes the Node.
func register(ctx context.Context, c client.Client, from configuration, labels map[string]string) error {
	name := from.NodeRegistration.Name
	if name == "" {
		name = os.Getenv(hostVariable)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	for _, arg := range from.NodeRegistration.KubeletExtraArgs {
		if arg.Name == "provider-id" {
			node.Spec.ProviderID = arg.Value
		}
	}
	if err := c.Create(ctx, node); err != nil {
		return err
	}
	node.Status.NodeInfo.KubeletVersion = "v1.31.2"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	if err := c.Status().Update(ctx, node); err != nil || labels == nil {
		return err
	}
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: component + "-" + name, Labels: map[string]string{"component": component, "tier": "control-plane"}},
			Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: component, Image: component}}},
		}
		if err := c.Create(ctx, pod); err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if err := c.Status().Update(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}
