# files.mk - make crafted: files that were made to harm a reader, through every command that reads
crafted: $(O)/kprof ## every reading command over files made to harm it; SAN=address,undefined. CRAFTED="--large", or files of yours
	@python3 test/crafted/limits.py $(O)/kprof $(CRAFTED)
.PHONY: crafted
