package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
)

// registry is the prefix of all keys of an API server.
const registry = "/registry/"

const (
	// Limits of a transaction: how many objects, and about how many bytes. etcd has limits of 128 and 1.5 MiB.
	batchObjects = 100
	batchBytes   = 1 << 20
	// page is how many objects are read per request.
	page = 500
)

// builtIn are the folders of the storage of kinds of Kubernetes that are copied. Custom resources have GROUP/PLURAL.
var builtIn = map[schema.GroupResource]string{ // a constant table
	{Resource: "namespaces"}:                                                             "namespaces",
	{Resource: "secrets"}:                                                                "secrets",
	{Resource: "configmaps"}:                                                             "configmaps",
	{Resource: "serviceaccounts"}:                                                        "serviceaccounts",
	{Resource: "services"}:                                                               "services/specs",
	{Group: "apps", Resource: "deployments"}:                                             "deployments",
	{Group: "rbac.authorization.k8s.io", Resource: "roles"}:                              "roles",
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:                       "rolebindings",
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}:                       "clusterroles",
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}:                "clusterrolebindings",
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:   "mutatingwebhookconfigurations",
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}: "validatingwebhookconfigurations",
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:               "apiextensions.k8s.io/customresourcedefinitions",
}

// ourOwn are the folders that the API server and the host of the managers write themselves, in the copy. Events are no objects of the user.
var ourOwn = []string{ // a constant list
	"apiregistration.k8s.io/", "clusterroles/system:", "deployments/", "endpointslices/", "events/", "flowschemas/", "ipaddresses/", "leases/",
	"masterleases/", "prioritylevelconfigurations/", "ranges/", "replicasets/", "servicecidrs/",
	"services/endpoints/", "services/specs/default/",
}

// keyOf returns the key of an object in the storage.
func keyOf(r schema.GroupResource, namespace, name string) string {
	folder, ok := builtIn[r]
	if !ok {
		folder = r.Group + "/" + r.Resource
	}
	if namespace != "" {
		folder += "/" + namespace
	}
	return registry + folder + "/" + name
}

// put stores objects as they are, with their UIDs, managed fields and status.
func put(ctx context.Context, etcd clientv3.KV, objects map[string][]byte) error {
	var batch []clientv3.Op
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := etcd.Txn(ctx).Then(batch...).Commit()
		batch, size = nil, 0
		if err != nil {
			return fmt.Errorf("storing the copy: %w", err)
		}
		return nil
	}
	for key, content := range objects {
		if len(batch) >= batchObjects || size+len(content) > batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, size = append(batch, clientv3.OpPut(key, string(content))), size+len(content)
	}
	return flush()
}

// encoded returns what an API server stores of an object: it does not write an object again if it encodes it to the same.
func encoded(o *unstructured.Unstructured) ([]byte, error) {
	o.SetResourceVersion("") // It is the revision of the storage.
	return runtime.Encode(unstructured.UnstructuredJSONScheme, o)
}

// written returns the objects that were written after a revision, and those that are gone, as before and after for difference.Compare.
func written(
	ctx context.Context, etcd clientv3.KV, copied map[string][]byte, revision int64,
) (before, after map[string]difference.Stored, err error) {
	before, after = map[string]difference.Stored{}, map[string]difference.Stored{}
	present := map[string]bool{}
	err = pages(ctx, etcd, func(key string) { present[key] = true }, clientv3.WithKeysOnly())
	if err != nil {
		return nil, nil, err
	}
	for key, content := range copied {
		if !present[key] && !isOurs(key) {
			before[key] = difference.Stored{Revision: revision, Content: content}
		}
	}
	r, err := etcd.Get(ctx, registry, clientv3.WithPrefix(), clientv3.WithMinModRev(revision+1))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the copy: %w", err)
	}
	for _, kv := range r.Kvs {
		key := string(kv.Key)
		if isOurs(key) {
			continue
		}
		after[key] = difference.Stored{Revision: kv.ModRevision, Content: kv.Value}
		if content, ok := copied[key]; ok {
			before[key] = difference.Stored{Revision: revision, Content: content}
		}
	}
	return before, after, nil
}

// pages calls do for every key.
func pages(ctx context.Context, etcd clientv3.KV, do func(key string), options ...clientv3.OpOption) error {
	from, end := registry, clientv3.GetPrefixRangeEnd(registry)
	for {
		r, err := etcd.Get(ctx, from, append(options, clientv3.WithRange(end), clientv3.WithLimit(10*page))...)
		if err != nil {
			return fmt.Errorf("reading the copy: %w", err)
		}
		for _, kv := range r.Kvs {
			do(string(kv.Key))
		}
		if !r.More {
			return nil
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
}

func isOurs(key string) bool {
	for _, folder := range ourOwn {
		if strings.HasPrefix(key, registry+folder) {
			return true
		}
	}
	return false
}

// parse reads the content of an object. Kinds of Kubernetes are read into their Go types, because an API server writes them in another
// encoding than JSON.
func parse(content []byte) (map[string]any, error) {
	if bytes.HasPrefix(content, []byte("{")) {
		var parsed map[string]any
		if err := json.Unmarshal(content, &parsed); err != nil {
			return nil, err
		}
		if !clientgoscheme.Scheme.Recognizes((&unstructured.Unstructured{Object: parsed}).GroupVersionKind()) {
			return parsed, nil
		}
	}
	o, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(content, nil, nil)
	if err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}
