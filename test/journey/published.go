package journey

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	// publishedVersion is the version of Cluster API that is upgraded from.
	publishedVersion = "v1.7.0"
	// injectAnnotation tells cert-manager where the CA bundle of a webhook comes from.
	injectAnnotation = "cert-manager.io/inject-ca-from"
)

// published is the form of a component of Cluster API v1.7.
type published struct {
	// label is the provider label, prefix that of the names of objects, and folder that of the reference data.
	label, prefix, namespace, folder string
	// arguments are those of the manager.
	arguments []any
}

// publishedComponents returns the components that a management cluster of Cluster API v1.7 has, with an infrastructure provider: the
// in-memory one, or that of Docker.
func publishedComponents(infrastructure string) []published {
	arguments := func(gates string, more ...any) []any {
		common := []any{
			"--leader-elect", "--diagnostics-address=${CAPI_DIAGNOSTICS_ADDRESS:=:8443}",
			"--insecure-diagnostics=${CAPI_INSECURE_DIAGNOSTICS:=false}",
		}
		if gates != "" {
			common = append(common, "--feature-gates="+gates)
		}
		return append(common, more...)
	}
	const (
		pools    = "MachinePool=${EXP_MACHINE_POOL:=true}"
		topology = ",ClusterTopology=${CLUSTER_TOPOLOGY:=false}"
		ignition = ",KubeadmBootstrapFormatIgnition=${EXP_KUBEADM_BOOTSTRAP_FORMAT_IGNITION:=false}"
		others   = ",ClusterResourceSet=${EXP_CLUSTER_RESOURCE_SET:=true},RuntimeSDK=${EXP_RUNTIME_SDK:=false}" +
			",MachineSetPreflightChecks=${EXP_MACHINE_SET_PREFLIGHT_CHECKS:=false}"
	)
	provider := published{"infrastructure-in-memory", "capim-", "capim-system", "inmemory", arguments("")}
	if infrastructure == "docker" {
		provider = published{"infrastructure-docker", "capd-", "capd-system", "docker", arguments(pools + topology)}
	}
	return []published{
		{"cluster-api", "capi-", "capi-system", "core", arguments(pools + others + topology)},
		{
			"bootstrap-kubeadm", "capi-kubeadm-bootstrap-", "capi-kubeadm-bootstrap-system", "bootstrap-kubeadm",
			arguments(pools+ignition, "--bootstrap-token-ttl=${KUBEADM_BOOTSTRAP_TOKEN_TTL:=15m}"),
		},
		{
			"control-plane-kubeadm", "capi-kubeadm-control-plane-", "capi-kubeadm-control-plane-system", "controlplane-kubeadm",
			arguments(pools + topology + ignition),
		},
		provider,
	}
}

// publishedDefinitions returns the folder with the CRDs of Cluster API v1.7, which are not part of this repository. Without
// them, the test is skipped.
func publishedDefinitions(t testing.TB, root string) string {
	t.Helper()
	dir := filepath.Join(cmp.Or(os.Getenv("CAPI_FACTS_DIR"), filepath.Join(root, "..", "shared", "facts")), "data", "crds-v1.7")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the CRDs of Cluster API v1.7 are absent: set CAPI_FACTS_DIR to the directory with data/crds-v1.7 (%v)", err)
	}
	return dir
}

// ReleasePublished adds Cluster API v1.7.0: CRDs as they were published, with conversion webhooks; managers with the published
// arguments and a volume with their certificate; Certificates, Issuers and annotations for cert-manager. Permissions and
// webhooks are those of this project, whose programs run in it, because images of v1.7 have the same names.
func (r *Repository) ReleasePublished(definitions string) {
	r.t.Helper()
	r.Release(publishedVersion)
	for _, p := range publishedComponents(r.Tools.Infrastructure) {
		r.Edit(p.label, publishedVersion, func(components string) string {
			text, err := p.components(components, filepath.Join(definitions, p.folder))
			if err != nil {
				r.t.Fatalf("components of %s %s: %v", p.label, publishedVersion, err)
			}
			return text
		})
	}
}

// components returns the published form of a component of this project.
func (p published) components(ours, definitions string) (string, error) {
	objects, err := parseObjects(ours)
	if err != nil {
		return "", err
	}
	theirs, err := p.definitions(definitions)
	if err != nil {
		return "", err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		// MachineDrainRules came later.
		return o.GetName() == "machinedrainrules."+clusterv1.GroupVersion.Group ||
			slices.ContainsFunc(theirs, func(crd *unstructured.Unstructured) bool { return crd.GetName() == o.GetName() })
	})
	for _, o := range objects {
		switch o.GetKind() {
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			p.inject(o)
		case "Deployment":
			err = p.deployment(o)
		}
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	certificate, err := parseObjects(p.certificate())
	if err != nil {
		return "", err
	}
	return join(slices.Concat(theirs, objects, certificate))
}

// join returns objects as YAML documents.
func join(objects []*unstructured.Unstructured) (string, error) {
	var out bytes.Buffer
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return "", err
		}
		out.WriteString("---\n" + string(text))
	}
	return out.String(), nil
}

// definitions returns the CRDs with what the published manifests add to the generated ones.
func (p published) definitions(dir string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has %d files: %w", dir, len(files), err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		objects, err := readObjects(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	for _, crd := range all {
		p.inject(crd)
		crd.SetLabels(map[string]string{"cluster.x-k8s.io/provider": p.label, "cluster.x-k8s.io/v1beta1": storageVersion(crd)})
		conversion := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1", "v1beta1"},
			"clientConfig": map[string]any{
				"service": map[string]any{"namespace": p.namespace, "name": p.prefix + "webhook-service", "path": "/convert"},
			},
		}}
		if err := unstructured.SetNestedMap(crd.Object, conversion, "spec", "conversion"); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// storageVersion returns the version of a CRD that implements the contract.
func storageVersion(crd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["storage"] == true {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

func (p published) inject(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[injectAnnotation] = p.namespace + "/" + p.prefix + "serving-cert"
	o.SetAnnotations(annotations)
}

// deployment changes the manager's Pods to the published form.
func (p published) deployment(o *unstructured.Unstructured) error {
	pod, _, err := unstructured.NestedMap(o.Object, "spec", "template", "spec")
	if err != nil {
		return err
	}
	containers, ok := pod["containers"].([]any)
	if !ok || len(containers) != 1 {
		return fmt.Errorf("it has %d containers", len(containers))
	}
	container := containers[0].(map[string]any)
	container["args"] = p.arguments
	delete(container, "resources")
	container["env"] = slices.DeleteFunc(container["env"].([]any),
		func(v any) bool { return v.(map[string]any)["name"] == "CONTAINER_MEMORY_LIMIT" })
	container["volumeMounts"] = []any{map[string]any{"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs", "readOnly": true}}
	pod["volumes"] = []any{map[string]any{"name": "cert", "secret": map[string]any{"secretName": p.secret()}}}
	pod["terminationGracePeriodSeconds"] = int64(10)
	pod["tolerations"] = []any{
		map[string]any{"effect": "NoSchedule", "key": "node-role.kubernetes.io/master"},
		map[string]any{"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"},
	}
	return unstructured.SetNestedMap(o.Object, pod, "spec", "template", "spec")
}

// secret is the name of the Secret with the webhooks' certificate.
func (p published) secret() string { return p.prefix + "webhook-service-cert" }

// host is the name of the webhooks' Service.
func (p published) host() string { return p.prefix + "webhook-service." + p.namespace + ".svc" }

func (p published) certificate() string {
	return fmt.Sprintf(`
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: %[1]sselfsigned-issuer, namespace: %[2]s, labels: {cluster.x-k8s.io/provider: %[3]s}}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: %[1]sserving-cert, namespace: %[2]s, labels: {cluster.x-k8s.io/provider: %[3]s}}
spec:
  dnsNames: [%[4]s, %[4]s.cluster.local]
  issuerRef: {kind: Issuer, name: %[1]sselfsigned-issuer}
  secretName: %[5]s
  subject: {organizations: [k8s-sig-cluster-lifecycle]}
`, p.prefix, p.namespace, p.label, p.host(), p.secret())
}
