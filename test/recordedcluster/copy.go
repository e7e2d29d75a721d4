package recordedcluster

import (
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// Copy is a recorded Cluster for another namespace, as if it had been recorded a moment ago: what has waited for days would be given up.
// UIDs are new: the garbage collector knows objects by them, and states share them.
type Copy struct {
	// Class has the ClusterClass and its templates.
	Class []*unstructured.Unstructured
	// Cluster is the Cluster itself, Others are all objects that belong to it.
	Cluster *unstructured.Unstructured
	Others  []*unstructured.Unstructured
	// Secrets are those of the Cluster, to be created after its other objects. Their content was not recorded, so they have certificates of
	// new CAs. Bootstrap data stays without content: the machines run.
	Secrets []*corev1.Secret
}

// NewCopy copies a state for a namespace. The API server of the Cluster gets a port of its own.
func NewCopy(state recorded.State, namespace string, port int, now time.Time) (*Copy, error) {
	endpoint := state.Cluster.Spec.ControlPlaneEndpoint
	replacements := []string{
		`"namespace":"default"`, `"namespace":` + strconv.Quote(namespace),
		`"default/`, `"` + namespace + `/`, // an annotation of the infrastructure
		fmt.Sprintf(`:%d`, endpoint.Port), fmt.Sprintf(`:%d`, port),
	}
	for _, o := range state.Objects {
		replacements = append(replacements, string(o.GetUID()), string(uuid.NewUUID()))
	}
	m := mover{replaced: strings.NewReplacer(replacements...), age: now.Sub(recordedAt(state))}
	c := &Copy{}
	for _, o := range state.Objects {
		moved, err := m.move(o)
		if err != nil {
			return nil, err
		}
		switch {
		case OfClass(moved):
			c.Class = append(c.Class, moved)
		case moved.GetKind() == clusterv1.ClusterKind:
			c.Cluster = moved
		default:
			c.Others = append(c.Others, moved)
		}
	}
	for _, o := range state.Secrets {
		moved, err := m.move(o)
		if err != nil {
			return nil, err
		}
		secret := &corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(moved.Object, secret); err != nil {
			return nil, err
		}
		secret.ResourceVersion, secret.UID, secret.ManagedFields = "", "", nil
		c.Secrets = append(c.Secrets, secret)
	}
	server := "https://" + net.JoinHostPort(endpoint.Host, strconv.Itoa(port))
	return c, c.certify(server, now)
}

// Objects returns all objects except Secrets.
func (c *Copy) Objects() []*unstructured.Unstructured {
	return slices.Concat(c.Class, []*unstructured.Unstructured{c.Cluster}, c.Others)
}

// Kubeconfig returns the kubeconfig of the Cluster.
func (c *Copy) Kubeconfig() []byte {
	for _, secret := range c.Secrets {
		if secret.Name == pki.SecretName(c.Cluster.GetName(), pki.Kubeconfig) {
			return secret.Data[pki.KubeconfigKey]
		}
	}
	return nil
}

// OfClass reports whether an object is a ClusterClass or one of its templates.
func OfClass(o *unstructured.Unstructured) bool {
	const class = "ClusterClass"
	return o.GetKind() == class ||
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Kind == class })
}

// recordedAt returns when a state was recorded: the time of its last write.
func recordedAt(state recorded.State) time.Time {
	var last time.Time
	for _, o := range state.Objects {
		for _, e := range o.GetManagedFields() {
			if e.Time != nil && e.Time.After(last) {
				last = e.Time.Time
			}
		}
	}
	return last
}

// mover replaces texts in objects, and adds a duration to all times in them.
type mover struct {
	replaced *strings.Replacer
	age      time.Duration
}

func (m mover) move(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	content, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON([]byte(m.postponed(m.replaced.Replace(string(content)))))
}

// timestamp matches times as objects have them.
var timestamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

func (m mover) postponed(text string) string {
	return timestamp.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339, found)
		if err != nil {
			return found
		}
		return at.Add(m.age).UTC().Format(time.RFC3339)
	})
}

// certify replaces the content of the Secrets with certificates and kubeconfig.
func (c *Copy) certify(server string, now time.Time) error {
	cluster := c.Cluster.GetName()
	ca, err := pki.NewCA(pki.ECDSA, now)
	if err != nil {
		return err
	}
	kubeconfig, err := pki.NewKubeconfig(cluster, server, ca, now)
	if err != nil {
		return err
	}
	for _, secret := range c.Secrets {
		switch purpose := pki.Purpose(strings.TrimPrefix(secret.Name, cluster+"-")); purpose {
		case pki.Kubeconfig:
			secret.Data = map[string][]byte{pki.KubeconfigKey: kubeconfig}
		case pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount:
			of := ca
			if purpose != pki.ClusterCA {
				if of, err = pki.NewCA(pki.ECDSA, now); err != nil {
					return err
				}
			}
			pair, err := of.PEM()
			if err != nil {
				return err
			}
			secret.Data = map[string][]byte{pki.CertificateKey: pair.Certificate, pki.PrivateKeyKey: pair.Key}
		}
	}
	return nil
}
