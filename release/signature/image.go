package signature

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

const (
	signedType   types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	envelopeType types.MediaType = "application/vnd.dsse.envelope.v1+json"
	// annotation of a layer with its signature.
	annotation = "dev.cosignproject.cosign/signature"
	claim      = "cosign container image signature"
)

// Tag returns the tag where cosign looks for the signatures (suffix "sig") or attestations ("att") of an image.
func Tag(digest v1.Hash, suffix string) string {
	return digest.Algorithm + "-" + digest.Hex + "." + suffix
}

// payload is what cosign signs: that the image with a digest has a name.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// Image returns the signature of an image or index as an artifact. The repository is its name without tag and digest.
func (k *Key) Image(ctx context.Context, repository string, digest v1.Hash) (v1.Image, error) {
	var p payload
	p.Critical.Identity.Reference, p.Critical.Image.Digest, p.Critical.Type = repository, digest.String(), claim
	content, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	signature, err := k.Sign(ctx, content)
	if err != nil {
		return nil, err
	}
	return artifact(mutate.Addendum{
		Layer:       static.NewLayer(content, signedType),
		Annotations: map[string]string{annotation: base64.StdEncoding.EncodeToString(signature)},
	})
}

// Attestations returns signed in-toto statements, by the type of their predicate, as an artifact.
func (k *Key) Attestations(ctx context.Context, statements map[string][]byte, payloadType string) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, predicateType := range slices.Sorted(maps.Keys(statements)) {
		envelope, err := k.Envelope(ctx, statements[predicateType], payloadType)
		if err != nil {
			return nil, err
		}
		layers = append(layers, mutate.Addendum{
			Layer:       static.NewLayer(envelope, envelopeType),
			Annotations: map[string]string{annotation: "", "predicateType": predicateType},
		})
	}
	return artifact(layers...)
}

// Envelope returns a signed payload in a DSSE envelope.
func (k *Key) Envelope(ctx context.Context, content []byte, payloadType string) ([]byte, error) {
	signer, err := dsse.NewEnvelopeSigner(k)
	if err != nil {
		return nil, err
	}
	envelope, err := signer.SignPayload(ctx, payloadType, content)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope)
}

// Blob returns the signature of a file, in base64, as "cosign verify-blob --signature" reads it.
func (k *Key) Blob(ctx context.Context, content []byte) ([]byte, error) {
	signature, err := k.Sign(ctx, content)
	if err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(signature) + "\n"), nil
}

func artifact(layers ...mutate.Addendum) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(image, layers...)
	if err != nil {
		return nil, fmt.Errorf("cannot add signatures: %w", err)
	}
	return image, nil
}

// Image returns nil if one of the signatures in an artifact is that of the key for an image with this name and digest.
func (v *Verifier) Image(ctx context.Context, signatures v1.Image, repository string, digest v1.Hash) error {
	manifest, err := signatures.Manifest()
	if err != nil {
		return err
	}
	problem := errors.New("the image has no signatures")
	for _, descriptor := range manifest.Layers {
		content, err := blob(signatures, descriptor.Digest)
		if err != nil {
			return err
		}
		if problem = v.image(ctx, content, descriptor.Annotations[annotation], repository, digest); problem == nil {
			return nil
		}
	}
	return problem
}

func (v *Verifier) image(ctx context.Context, content []byte, encoded, repository string, digest v1.Hash) error {
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("the signature is not base64: %w", err)
	}
	if err := v.Verify(ctx, content, signature); err != nil {
		return err
	}
	var p payload
	if err := json.Unmarshal(content, &p); err != nil {
		return fmt.Errorf("the signed claim is not valid: %w", err)
	}
	if p.Critical.Image.Digest != digest.String() || p.Critical.Identity.Reference != repository {
		return fmt.Errorf("the signature is for %s@%s", p.Critical.Identity.Reference, p.Critical.Image.Digest)
	}
	return nil
}

// Statements returns the statements in an artifact with attestations, verified, by the type of their predicate.
func (v *Verifier) Statements(ctx context.Context, attestations v1.Image) (map[string][]byte, error) {
	manifest, err := attestations.Manifest()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, descriptor := range manifest.Layers {
		content, err := blob(attestations, descriptor.Digest)
		if err != nil {
			return nil, err
		}
		if out[descriptor.Annotations["predicateType"]], err = v.Envelope(ctx, content); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Envelope returns the payload of a DSSE envelope that the key has signed.
func (v *Verifier) Envelope(ctx context.Context, content []byte) ([]byte, error) {
	var envelope dsse.Envelope
	if err := json.Unmarshal(content, &envelope); err != nil {
		return nil, fmt.Errorf("the envelope is not valid: %w", err)
	}
	verifier, err := dsse.NewEnvelopeVerifier(v)
	if err != nil {
		return nil, err
	}
	if _, err := verifier.Verify(ctx, &envelope); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return envelope.DecodeB64Payload()
}

// Blob returns nil if a signature, in base64, is that of the key for a file.
func (v *Verifier) Blob(ctx context.Context, content, encoded []byte) error {
	signature, err := base64.StdEncoding.AppendDecode(nil, trimmed(encoded))
	if err != nil {
		return fmt.Errorf("the signature is not base64: %w", err)
	}
	return v.Verify(ctx, content, signature)
}

func trimmed(line []byte) []byte {
	for len(line) > 0 && line[len(line)-1] == '\n' {
		line = line[:len(line)-1]
	}
	return line
}

func blob(image v1.Image, digest v1.Hash) ([]byte, error) {
	layer, err := image.LayerByDigest(digest)
	if err != nil {
		return nil, err
	}
	reader, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(reader)
	return content, errors.Join(err, reader.Close())
}
