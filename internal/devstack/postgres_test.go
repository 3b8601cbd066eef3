package devstack_test

import (
	"path/filepath"
	"testing"
)

func TestFolderWithSpacesAndSignsInItsNameWorks(t *testing.T) {
	stack := start(t, filepath.Join(folder(t), "my shows", "1+1 %20 ü"))
	write(t, stack, "here")
	wantWord(t, stack, "here")
}
