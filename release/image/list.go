package image

import (
	"encoding/json"
	"fmt"
	"os"
)

// List names the images of a build.
type List struct {
	Registry string `json:"registry"`
	Version  string `json:"version"`
	// Images are the images by program.
	Images map[string]Built `json:"images"`
}

// Built is an image for one or several platforms.
type Built struct {
	// Digest is that of the index.
	Digest string `json:"digest"`
	// Platforms are the digests of the images for each platform, such as "linux/amd64".
	Platforms map[string]string `json:"platforms"`
}

// Repository returns the name of a program's image without tag and digest.
func (l List) Repository(program string) string { return l.Registry + "/" + program }

// Write writes the list into a file.
func (l List) Write(path string) error {
	content, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o600)
}

// ReadList reads the list in a file.
func ReadList(path string) (List, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return List{}, fmt.Errorf("cannot read the list of images: %w", err)
	}
	var l List
	if err := json.Unmarshal(content, &l); err != nil {
		return List{}, fmt.Errorf("%s is not a list of images: %w", path, err)
	}
	return l, nil
}
