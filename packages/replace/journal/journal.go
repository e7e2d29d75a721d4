// Package journal records what a provider's objects were before an upgrade, in Secrets in the provider's namespace.
//
// It is the only source for restoring them: a repository may no longer have the previous version, and users change
// objects. It is written before the first change of an upgrade and deleted after the last one, so that an interrupted
// upgrade is found by the next run.
package journal

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

const (
	// Label is the value of the label clusterctl.cluster.x-k8s.io/core of journals.
	Label = "upgrade"

	// partSize is how much one Secret holds, in bytes; the API server accepts 1 MiB.
	partSize = 900 << 10
	// maxSize bounds what is read, in bytes: a journal that is larger was not written by this package.
	maxSize = 256 << 20

	namePrefix = "clusterctl-upgrade-"
	dataKey    = "journal"
	// partsAnnotation of the first Secret is the number of all; it is written last, and others without it are leftovers.
	partsAnnotation = "clusterctl.cluster.x-k8s.io/upgrade-parts"
)

// Entry is what is recorded of the upgrade of one provider.
type Entry struct {
	// Provider is its previous entry in the inventory.
	Provider clusterctlv1.Provider `json:"provider"`
	// Version is the version that it is upgraded to.
	Version string `json:"version"`
	// Objects are all objects that the provider had, and those of the new version that existed.
	Objects []unstructured.Unstructured `json:"objects"`
	// Targets identify the objects of the new version.
	Targets []unstructured.Unstructured `json:"targets"`

	parts int
}

// List returns the journals of all providers, by namespace and name of the provider's entry in the inventory. Leftovers of
// journals that were not completely written, before any change, are not among them.
func List(ctx context.Context, c client.Reader) (map[client.ObjectKey]*Entry, error) {
	list := &corev1.SecretList{}
	if err := c.List(ctx, list, client.MatchingLabels{clusterctlv1.ClusterctlCoreLabel: Label}); err != nil {
		return nil, fmt.Errorf("cannot list the journals of interrupted upgrades: %w", err)
	}
	secrets := map[client.ObjectKey]*corev1.Secret{}
	for i := range list.Items {
		secrets[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	entries := map[client.ObjectKey]*Entry{}
	for key, head := range secrets {
		if head.Annotations[partsAnnotation] == "" {
			continue
		}
		entry, err := read(head, secrets)
		if err != nil {
			return nil, fmt.Errorf("invalid journal of an interrupted upgrade, Secret %s: %w: it was changed, or belongs to a newer clusterctl",
				key, err)
		}
		entries[client.ObjectKeyFromObject(&entry.Provider)] = entry
	}
	return entries, nil
}

func read(head *corev1.Secret, secrets map[client.ObjectKey]*corev1.Secret) (*Entry, error) {
	parts, err := strconv.Atoi(head.Annotations[partsAnnotation])
	if err != nil {
		return nil, fmt.Errorf("annotation %s is not a number", partsAnnotation)
	}
	compressed := head.Data[dataKey]
	for n := 1; n < parts; n++ {
		part := secrets[client.ObjectKey{Namespace: head.Namespace, Name: partName(head.Name, n)}]
		if part == nil {
			return nil, fmt.Errorf("part %d of %d does not exist", n+1, parts)
		}
		compressed = append(compressed, part.Data[dataKey]...)
	}
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(reader, maxSize))
	if err != nil {
		return nil, err
	}
	entry := &Entry{parts: parts}
	if err := json.Unmarshal(raw, entry); err != nil {
		// Not the error itself, which may quote the contents of a Secret.
		return nil, fmt.Errorf("its contents cannot be parsed")
	}
	return entry, nil
}

// Write records the entry. The Secret that makes it valid is written last. It never replaces a valid journal.
func (e *Entry) Write(ctx context.Context, c client.Client) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot encode the journal of the upgrade of %s: %w", e.Provider.Name, err)
	}
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	// A buffer accepts every write.
	_, _ = w.Write(raw)
	_ = w.Close()
	parts := slices.Collect(slices.Chunk(compressed.Bytes(), partSize))
	e.parts = len(parts)
	for n, part := range slices.Backward(parts) {
		if err := write(ctx, c, e.secret(n, part)); err != nil {
			return fmt.Errorf("cannot write the journal of the upgrade of %s: %w", e.Provider.Name, failsafe.Redacted(err))
		}
	}
	return nil
}

func write(ctx context.Context, c client.Client, s *corev1.Secret) error {
	err := c.Create(ctx, s)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(s), live); err != nil {
		return err
	}
	if live.Labels[clusterctlv1.ClusterctlCoreLabel] != Label {
		return fmt.Errorf("Secret %s exists, but is not a journal: delete or rename it", client.ObjectKeyFromObject(s))
	}
	if live.Annotations[partsAnnotation] != "" {
		if bytes.Equal(live.Data[dataKey], s.Data[dataKey]) {
			return nil // The response to an earlier request was lost.
		}
		return fmt.Errorf("another clusterctl is upgrading this provider, see Secret %s: wait until it ends", client.ObjectKeyFromObject(s))
	}
	live.Labels, live.Annotations, live.Data = s.Labels, s.Annotations, s.Data
	return c.Update(ctx, live)
}

func (e *Entry) secret(n int, data []byte) *corev1.Secret {
	labels := map[string]string{
		clusterctlv1.ClusterctlCoreLabel: Label, clusterctlv1.ClusterctlLabel: "", clusterv1.ProviderNameLabel: e.Provider.ManifestLabel(),
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Provider.Namespace, Name: partName(namePrefix+e.Provider.ManifestLabel(), n), Labels: labels},
		Type:       "clusterctl.cluster.x-k8s.io/upgrade",
		Data:       map[string][]byte{dataKey: data},
	}
	if n == 0 {
		s.Annotations = map[string]string{partsAnnotation: strconv.Itoa(e.parts)}
	}
	return s
}

// Delete ends the upgrade. The Secret that makes the journal valid is deleted first.
func (e *Entry) Delete(ctx context.Context, c client.Client) error {
	for n := range max(e.parts, 1) {
		if err := c.Delete(ctx, e.secret(n, nil)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete the journal of the upgrade of %s: %w", e.Provider.Name, err)
		}
	}
	return nil
}

func partName(head string, n int) string {
	if n == 0 {
		return head
	}
	return head + "-" + strconv.Itoa(n)
}
