# files.mk - make peers-tests: PyTorch's own tests and those of its users, with and without us
peers-tests: $(BUILD)/libkprof.so $(HOST_O)/libempty.so ## tests of PyTorch, accelerate, gpytorch, skorch come to the same with and without the library, in each mode (hours; PEERS_ARGS= narrows it)
	@python3 test/peers/run.py $(HOST_O)/libempty.so $(BUILD)/libkprof.so $(PEERS_ARGS)
.PHONY: peers-tests
