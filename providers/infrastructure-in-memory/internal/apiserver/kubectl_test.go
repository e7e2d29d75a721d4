package apiserver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// kubectl runs kubectl of the PATH with a cluster and standard input.
type kubectl struct {
	t    *testing.T
	path string
	home string
}

func newKubectl(t *testing.T, config *rest.Config) *kubectl {
	t.Helper()
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not on the PATH")
	}
	home := t.TempDir()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	kubeconfig.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*kubeconfig, filepath.Join(home, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	return &kubectl{t: t, path: path, home: home}
}

func (k *kubectl) try(stdin string, args ...string) (string, error) {
	k.t.Helper()
	cmd := exec.CommandContext(k.t.Context(), k.path, args...)
	cmd.Env = append(os.Environ(), "HOME="+k.home, "KUBECONFIG="+filepath.Join(k.home, "kubeconfig"))
	cmd.Stdin = strings.NewReader(stdin)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	return output.String(), err
}

func (k *kubectl) run(stdin string, args ...string) string {
	k.t.Helper()
	output, err := k.try(stdin, args...)
	if err != nil {
		k.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// prints runs kubectl and checks its output.
func (k *kubectl) prints(reason, stdin string, words []string, args ...string) {
	k.t.Helper()
	output := k.run(stdin, args...)
	for _, word := range words {
		if !strings.Contains(output, word) {
			k.t.Errorf("%s: kubectl %s: %q is missing in\n%s", reason, strings.Join(args, " "), word, output)
		}
	}
	k.t.Logf("kubectl %s\n%s", strings.Join(args, " "), output)
}

// populate creates a control plane's node and its etcd Pod.
func populate(t *testing.T, g *cloud.Group) {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "cp-0", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
		Spec:       corev1.NodeSpec{ProviderID: "in-memory://cp-0"},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.31.2"},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.7"}},
		},
	}
	if _, err := store.Ensure(g, node); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Ensure(g, staticPod("kube-apiserver", "cp-0")); err != nil {
		t.Fatal(err)
	}
}

func staticPod(component, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: component + "-" + node, Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{"component": component, "tier": "control-plane"},
		},
		Spec: corev1.PodSpec{
			NodeName: node, SecurityContext: &corev1.PodSecurityContext{},
			Containers: []corev1.Container{{Name: component, Image: component + ":v1"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1", ports: [{containerPort: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
`

func TestKubectl(t *testing.T) {
	c := newTestCluster(t)
	populate(t, c.group)
	k := newKubectl(t, c.admin(t))
	extra := strings.Replace(deploymentYAML, `- {name: web, image: "nginx:1"`, `- {name: side, image: "side:1"}
      - {name: web, image: "nginx:2"`, 1)

	for _, step := range []struct {
		reason string
		stdin  string
		args   []string
		words  []string
	}{
		{"the version of the cluster", "", []string{"version"}, []string{"Server Version", "v1.31.2"}},
		{"nodes show roles and versions", "", []string{"get", "nodes", "-o", "wide"},
			[]string{"NAME", "INTERNAL-IP", "cp-0", "Ready", "control-plane", "v1.31.2", "10.0.0.7"}},
		{"pods show readiness", "", []string{"get", "pods", "-A"}, []string{"NAMESPACE", "kube-apiserver-cp-0", "1/1", "Running"}},
		{"pods show where they run", "", []string{"get", "pods", "-n", "kube-system", "-o", "wide"}, []string{"NODE", "cp-0"}},
		{"the default namespaces exist", "", []string{"get", "ns"},
			[]string{"default", "kube-system", "kube-public", "kube-node-lease", "Active"}},
		{"objects are created by apply", deploymentYAML, []string{"apply", "-f", "-"},
			[]string{"deployment.apps/web created", "configmap/settings created"}},
		{"applying again changes nothing", deploymentYAML, []string{"apply", "-f", "-"},
			[]string{"deployment.apps/web unchanged", "configmap/settings unchanged"}},
		{"apply merges lists by key", extra, []string{"apply", "-f", "-"}, []string{"deployment.apps/web configured"}},
		{"both containers exist", "", []string{"get", "deploy", "web", "-o", "wide"}, []string{"0/1", "side,web", "side:1,nginx:2", "app=web"}},
		{"apply removes a container", strings.Replace(deploymentYAML, "nginx:1", "nginx:3", 1), []string{"apply", "-f", "-"},
			[]string{"configured"}},
		{"the container no longer exists", "", []string{"get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}"},
			[]string{"nginx:3"}},
		{"diff without differences", strings.Replace(deploymentYAML, "nginx:1", "nginx:3", 1), []string{"diff", "-f", "-"}, nil},
		{"server-side apply takes over from client-side apply", strings.Replace(deploymentYAML, "nginx:1", "nginx:4", 1),
			[]string{"apply", "--server-side", "-f", "-"}, []string{"serverside-applied"}},
		{"strategic merge patch", "",
			[]string{"patch", "deploy", "web", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:5"}]}}}}`},
			[]string{"patched"}},
		{"JSON patch", "", []string{"patch", "cm", "settings", "--type=json", "-p",
			`[{"op":"replace","path":"/data/color","value":"red"}]`}, []string{"patched"}},
		{"scale", "", []string{"scale", "deploy", "web", "--replicas=3"}, []string{"scaled"}},
		{"set image", "", []string{"set", "image", "deploy/web", "web=nginx:6"}, []string{"image updated"}},
		{"label and select", "", []string{"label", "node", "cp-0", "zone=a"}, []string{"labeled"}},
		{"label selector", "", []string{"get", "nodes", "-l", "zone=a", "-o", "name"}, []string{"node/cp-0"}},
		{"cordon", "", []string{"cordon", "cp-0"}, []string{"cordoned"}},
		{"a cordoned node", "", []string{"get", "nodes"}, []string{"Ready,SchedulingDisabled"}},
		{"taint", "", []string{"taint", "node", "cp-0", "k=v:NoSchedule"}, []string{"tainted"}},
		{"describe node", "", []string{"describe", "node", "cp-0"}, []string{"kube-apiserver-cp-0", "k=v:NoSchedule"}},
		{"create secret", "", []string{"create", "secret", "generic", "s", "--from-literal=a=b"}, []string{"secret/s created"}},
		{"secrets show type and size", "", []string{"get", "secrets"}, []string{"Opaque", "1"}},
		{"create service", "", []string{"create", "service", "clusterip", "web", "--tcp=80:8080"}, []string{"service/web created"}},
		{"get all", "", []string{"get", "all"}, []string{"service/web", "deployment.apps/web"}},
		{"explain", "", []string{"explain", "deployment.spec.replicas"}, []string{"Number of desired pods"}},
		{"api-resources", "", []string{"api-resources"}, []string{"deployments", "apps/v1", "nodes", "rbac.authorization.k8s.io/v1"}},
		{"whoami", "", []string{"auth", "whoami"}, []string{"kubernetes-admin", "system:masters"}},
		{"can-i", "", []string{"auth", "can-i", "delete", "nodes"}, []string{"yes"}},
		{"lists in pages", "", []string{"get", "ns", "--chunk-size=1"}, []string{"default", "kube-system", "kube-public", "kube-node-lease"}},
		{"impersonation", "", []string{"auth", "whoami", "--as", "system:serviceaccount:default:x"},
			[]string{"system:serviceaccount:default:x", "system:serviceaccounts:default", "system:authenticated"}},
		{"field selectors", "", []string{"get", "pods", "-A", "--field-selector", "spec.nodeName=cp-0", "-o", "name"},
			[]string{"pod/kube-apiserver-cp-0"}},
		{"wait", "", []string{"wait", "--for=condition=Ready", "node/cp-0", "--timeout=5s"}, []string{"condition met"}},
		{"cluster-info", "", []string{"cluster-info"}, []string{"is running at"}},
		{"yaml", "", []string{"get", "cm", "settings", "-o", "yaml"}, []string{"color: red", "kind: ConfigMap"}},
		{"raw paths", "", []string{"get", "--raw", "/readyz"}, []string{"ok"}},
		{"drain evicts Pods", "", []string{"drain", "cp-0", "--force", "--ignore-daemonsets"}, []string{"evicted", "drained"}},
		{"delete waits", "", []string{"delete", "deploy/web", "cm/settings"}, []string{"deleted"}},
		{"delete namespace with content", "", []string{"create", "ns", "n1"}, []string{"created"}},
		{"content of the namespace", "", []string{"create", "cm", "x", "-n", "n1"}, []string{"created"}},
		{"delete namespace", "", []string{"delete", "ns", "n1"}, []string{"deleted"}},
	} {
		k.prints(step.reason, step.stdin, step.words, step.args...)
	}
}

func TestKubectlErrors(t *testing.T) {
	c := newTestCluster(t)
	populate(t, c.group)
	k := newKubectl(t, c.admin(t))
	for _, test := range []struct {
		reason string
		stdin  string
		args   []string
		words  string
	}{
		{"unknown fields are errors by default", strings.Replace(deploymentYAML, "selector:", "seletor: {}\n  selector:", 1),
			[]string{"apply", "-f", "-"}, `unknown field "spec.seletor"`},
		{"invalid names", "", []string{"create", "cm", "Not_A_Name"}, "Invalid value"},
		{"objects that do not exist", "", []string{"get", "cm", "none"}, "NotFound"},
		{"deletion of the default namespace", "", []string{"delete", "ns", "default"}, "forbidden"},
		{"unknown resources", "", []string{"get", "widgets"}, `the server doesn't have a resource type "widgets"`},
		{"logs of containers", "", []string{"logs", "-n", "kube-system", "kube-apiserver-cp-0"},
			"Pod kube-system/kube-apiserver-cp-0 is simulated: its containers write no logs"},
		{"commands in containers", "", []string{"exec", "-n", "kube-system", "kube-apiserver-cp-0", "--", "ls"},
			"Pod kube-system/kube-apiserver-cp-0 is simulated: no command can run in it"},
		{"debug containers", "", []string{"debug", "-n", "kube-system", "kube-apiserver-cp-0", "--image=x"},
			"ephemeral containers are disabled for this cluster"},
		{"attaching to containers", "", []string{"attach", "-n", "kube-system", "kube-apiserver-cp-0"},
			"Pod kube-system/kube-apiserver-cp-0 is simulated: there is no process to attach to"},
		{"permissions of an impersonated user", "", []string{"get", "nodes", "--as", "jane"}, `User "jane" cannot list resource "nodes"`},
		{"a namespace that does not exist", "", []string{"create", "cm", "x", "-n", "nowhere"}, `namespaces "nowhere" not found`},
	} {
		output, err := k.try(test.stdin, test.args...)
		if err == nil || !strings.Contains(output, test.words) {
			t.Errorf("%s: kubectl %s: error %v, want %q in\n%s", test.reason, strings.Join(test.args, " "), err, test.words, output)
		}
	}
}
