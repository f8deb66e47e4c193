// start.js - begins: every view is there
start().catch(error => { byId("opening").textContent = error.message; byId("opening").className = "card critical"; byId("opening").hidden = false; console.error(error); });
