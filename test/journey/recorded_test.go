package journey

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// stored is the storage of a management cluster: etcd, as the API server uses it. Objects that are written there keep their UIDs,
// managedFields and status, which no request to the API server can set.
type stored struct {
	etcd *clientv3.Client
	t    testing.TB
}

// storage connects to the etcd of a running program.
func (s *Standalone) storage() *stored {
	s.t.Helper()
	run, err := filepath.EvalSymlinks(filepath.Join(s.directory, "data", "run"))
	testenv.Must(s.t, err)
	var sockets []string
	for _, pattern := range []string{"etcd.sock", filepath.Join("*", "etcd.sock")} {
		found, err := filepath.Glob(filepath.Join(run, pattern))
		testenv.Must(s.t, err)
		sockets = append(sockets, found...)
	}
	if len(sockets) != 1 {
		s.t.Fatalf("the program has sockets %v of etcd, want one", sockets)
	}
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + sockets[0]}, DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
	})
	testenv.Must(s.t, err)
	s.t.Cleanup(func() { _ = etcd.Close() })
	return &stored{etcd: etcd, t: s.t}
}

// resources are the custom resources whose objects were recorded, by kind.
func resources() map[string]string {
	plurals := map[string]string{"ClusterClass": "clusterclasses"}
	for _, kind := range []string{
		"Cluster", "Machine", "MachineSet", "MachineDeployment", "MachineHealthCheck", "KubeadmConfig", "KubeadmConfigTemplate",
		"KubeadmControlPlane", "KubeadmControlPlaneTemplate",
		"InMemoryCluster", "InMemoryClusterTemplate", "InMemoryMachine", "InMemoryMachineTemplate",
	} {
		plurals[kind] = strings.ToLower(kind) + "s"
	}
	return plurals
}

func storageKey(o *unstructured.Unstructured) string {
	return fmt.Sprintf("/registry/%s/%s/%s/%s", o.GroupVersionKind().Group, resources()[o.GetKind()], o.GetNamespace(), o.GetName())
}

// put stores objects of custom resources as they are, all at once: the garbage collector deletes an object whose owner comes later.
func (s *stored) put(objects []*unstructured.Unstructured) {
	s.t.Helper()
	var puts []clientv3.Op
	for _, o := range objects {
		o = o.DeepCopy()
		o.SetResourceVersion("") // It is the revision of the storage.
		// The same bytes as those of the API server, which does not write an object again if it encodes it to the same.
		content, err := runtime.Encode(unstructured.UnstructuredJSONScheme, o)
		testenv.Must(s.t, err)
		puts = append(puts, clientv3.OpPut(storageKey(o), string(content)))
	}
	_, err := s.etcd.Txn(s.t.Context()).Then(puts...).Commit()
	testenv.Must(s.t, err)
}

// objects returns all objects of recorded custom resources in a namespace, by key.
func (s *stored) objects(namespace string) map[string]difference.Stored {
	s.t.Helper()
	found := map[string]difference.Stored{}
	for _, group := range []string{"cluster", "bootstrap.cluster", "controlplane.cluster", "infrastructure.cluster"} {
		r, err := s.etcd.Get(s.t.Context(), "/registry/"+group+".x-k8s.io/", clientv3.WithPrefix())
		testenv.Must(s.t, err)
		for _, kv := range r.Kvs {
			if strings.Contains(string(kv.Key), "/"+namespace+"/") {
				found[string(kv.Key)] = difference.Stored{Revision: kv.ModRevision, Content: kv.Value}
			}
		}
	}
	return found
}

// changes returns what differs between two calls of objects, without order: objects that were created or deleted, and fields as
// "RESOURCE + .path" if they were added, with - if they were removed, and with ~ if they have another value. What follows from other changes
// is left out: managedFields, generations and times; if nothing else changes, it is "RESOURCE only managedFields of MANAGER".
func (s *stored) changes(before, after map[string]difference.Stored) []string {
	s.t.Helper()
	objects, err := difference.Compare(before, after, parse)
	testenv.Must(s.t, err)
	found := map[string]bool{}
	for _, o := range objects {
		resource := strings.Split(o.Key, "/")[3]
		for _, field := range o.Fields {
			found[resource+" "+field] = true
		}
		switch {
		case o.Effect != difference.Changed:
			found[o.Key+" was "+string(o.Effect)] = true
		case len(o.Fields) == 0 && !o.Times: // While the simulated machines start, conditions may change, and change back.
			found[resource+" only managedFields of "+strings.Join(o.Managers, ", ")] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func parse(content []byte) (map[string]any, error) {
	var parsed map[string]any
	return parsed, json.Unmarshal(content, &parsed)
}

// load stores the objects of a recorded Cluster in the namespace of a World, as if they had been recorded a moment ago: what has waited for
// days would be given up. Its Secrets, whose content was not recorded, get a valid one. A free port replaces that of its API server. UIDs
// are new: the garbage collector knows objects by them, and states share them.
func (w *World) load(s *stored, state recorded.State) {
	w.t.Helper()
	recordedPort := state.Cluster.Spec.ControlPlaneEndpoint.Port
	port := shared.Management(w.t).freePortBelow(w.t, recordedLimit)
	replacements := []string{
		`"namespace":"default"`, `"namespace":` + strconv.Quote(w.Namespace),
		`"default/`, `"` + w.Namespace + `/`, // an annotation of the infrastructure
		fmt.Sprintf(`:%d`, recordedPort), fmt.Sprintf(`:%d`, port),
	}
	for _, o := range state.Objects {
		replacements = append(replacements, string(o.GetUID()), string(uuid.NewUUID()))
	}
	replaced, age := strings.NewReplacer(replacements...), time.Since(recordedAt(state))
	moved := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		content, err := json.Marshal(o)
		testenv.Must(w.t, err)
		out := &unstructured.Unstructured{}
		testenv.Must(w.t, json.Unmarshal([]byte(postponed(replaced.Replace(string(content)), age)), &out.Object))
		return out
	}
	var objects, secrets []*unstructured.Unstructured
	for _, o := range state.Objects {
		objects = append(objects, moved(o))
	}
	for _, o := range state.Secrets {
		secrets = append(secrets, moved(o))
	}
	s.put(objects)
	w.loadSecrets(client.ObjectKey{Namespace: w.Namespace, Name: state.Cluster.Name}, managedServer(port), secrets)
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

// timestamp matches times as objects have them.
var timestamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// postponed adds a duration to all times in a text.
func postponed(text string, by time.Duration) string {
	return timestamp.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339, found)
		if err != nil {
			return found
		}
		return at.Add(by).UTC().Format(time.RFC3339)
	})
}

// loadSecrets creates Secrets as they were recorded, with certificates of new CAs. Bootstrap data stays what it is: the machines run.
func (w *World) loadSecrets(cluster client.ObjectKey, server string, secrets []*unstructured.Unstructured) {
	w.t.Helper()
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	testenv.Must(w.t, err)
	kubeconfig, err := pki.NewKubeconfig(cluster.Name, server, ca, time.Now())
	testenv.Must(w.t, err)
	for _, o := range secrets {
		secret := &corev1.Secret{}
		testenv.Must(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, secret))
		secret.Namespace, secret.ResourceVersion, secret.UID, secret.ManagedFields = w.Namespace, "", "", nil
		switch purpose := pki.Purpose(strings.TrimPrefix(secret.Name, cluster.Name+"-")); purpose {
		case pki.Kubeconfig:
			secret.Data = map[string][]byte{pki.KubeconfigKey: kubeconfig}
		case pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount:
			of := ca
			if purpose != pki.ClusterCA {
				of, err = pki.NewCA(pki.ECDSA, time.Now())
				testenv.Must(w.t, err)
			}
			pair, err := of.PEM()
			testenv.Must(w.t, err)
			secret.Data = map[string][]byte{pki.CertificateKey: pair.Certificate, pki.PrivateKeyKey: pair.Key}
		}
		testenv.Must(w.t, w.Client.Create(w.t.Context(), secret))
	}
}
